import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** WhiteNoise sends name.br or name.gz where it lies beside the file, and does not compress. */
function compressedSiblings(): Plugin {
  return {
    name: 'compressed-siblings',
    apply: 'build',
    // Only what was written is final: other plugins still change chunks before that.
    async writeBundle({ dir }, bundle) {
      for (const { fileName } of Object.values(bundle)) {
        if (!/\.(js|css|svg)$/.test(fileName)) continue;
        const source = await readFile(join(dir!, fileName));
        const packed = { br: brotliCompressSync(source), gz: gzipSync(source, { level: 9 }) };
        for (const [ending, bytes] of Object.entries(packed))
          if (bytes.length < source.length)
            await writeFile(join(dir!, `${fileName}.${ending}`), bytes);
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
    rolldownOptions: {
      input: { main: 'src/main.ts' },
      checks: { eval: false }, // htmx has one, which base.html switches off
    },
  },
  server: { port: 5173, strictPort: true, cors: true },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
}));
