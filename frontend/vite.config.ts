import { gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** WhiteNoise sends name.gz where it lies beside the file, and does not compress by itself. */
function compressedSiblings(): Plugin {
  return {
    name: 'compressed-siblings',
    apply: 'build',
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (!/\.(js|css|svg)$/.test(file.fileName)) continue;
        const source = file.type === 'chunk' ? file.code : file.source;
        const packed = gzipSync(source, { level: 9 });
        if (packed.length < source.length) {
          this.emitFile({ type: 'asset', fileName: `${file.fileName}.gz`, source: packed });
        }
      }
    },
  };
}

export default defineConfig(({ command }) => ({
  // Relative: the server may live below a path that is known only when it starts.
  base: command === 'serve' ? '/static/' : './',
  plugins: [
    svelte({
      compilerOptions: { runes: true },
      onwarn(warning) {
        // An accessibility warning is a bug: it stops the build.
        throw new Error(`${warning.filename ?? ''}: ${warning.code}: ${warning.message}`);
      },
    }),
    compressedSiblings(),
  ],
  build: {
    outDir: '../contextlab/static/contextlab',
    emptyOutDir: true,
    manifest: 'manifest.json',
    target: 'es2022',
    rolldownOptions: { input: { main: 'src/main.ts' } },
  },
  server: { port: 5173, strictPort: true, cors: true },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
}));
