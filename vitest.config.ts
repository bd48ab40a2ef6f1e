import { defineConfig } from 'vitest/config'

// Inside the workspace a package is its sources.
const conditions = ['@fencepost/source', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: ['packages/engine/test/setup/global-setup.ts'],
    // Processes, not threads: tests listen to signals, and end processes.
    pool: 'forks',
    // They mostly wait, for Postgres or for each other.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
