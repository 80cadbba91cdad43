import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { BuildEnvironmentOptions, Plugin } from 'vite';
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

/** Neither a script's end nor its beginning may stand in a script that a page holds itself. */
function inlineable(): Plugin {
  return {
    name: 'inlineable',
    generateBundle(_, bundle) {
      for (const part of Object.values(bundle))
        if (part.type === 'chunk')
          part.code = part.code.replaceAll(/<(?=!--|\/?script)/gi, '\\x3C');
    },
  };
}

/** Everything that a replay needs in one script and one style sheet, for files that work from the disk:
    `vite build --mode file`, after the pages. */
const ofFile: BuildEnvironmentOptions = {
  emptyOutDir: false,
  manifest: false,
  cssCodeSplit: false,
  modulePreload: false,
  rolldownOptions: {
    input: { 'replay-file': 'src/replay/file/main.ts' },
    output: {
      codeSplitting: false,
      entryFileNames: '[name].js',
      assetFileNames: 'replay-file.[ext]',
    },
  },
};

export default defineConfig(({ command, mode }) => ({
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
    mode === 'file' ? inlineable() : compressedSiblings(),
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
    ...(mode === 'file' ? ofFile : {}),
  },
  server: { port: 5173, strictPort: true, cors: true },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
}));
