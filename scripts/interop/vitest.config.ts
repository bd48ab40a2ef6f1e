import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Tests that need what scripts/interop/install.mjs installs; `npm test` needs npm alone.
const conditions = ['@fencepost/source', 'node', 'development|production']

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/test/interop/**/*.interop.ts'],
    globalSetup: ['packages/engine/test/setup/global-setup.ts'],
    pool: 'forks',
    // One Spark at a time.
    maxWorkers: 1,
    // A JVM on a busy machine takes its time; only one that hangs is to be cut off.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
