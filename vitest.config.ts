import { defineConfig } from 'vitest/config'

// Inside the workspace a package is its sources.
const conditions = ['@fencepost/source', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['{packages,examples}/*/{src,test}/**/*.test.ts'],
    globalSetup: ['packages/engine/test/setup/global-setup.ts'],
    // Processes, not threads: tests listen to signals, and end processes.
    pool: 'forks',
    // Vitest's own choice on two cores is one; more than the cores brought nothing.
    maxWorkers: '100%',
    testTimeout: 30_000,
    // What is polled for comes soon, or not at all; only a busy machine makes it come later than a second.
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 60_000,
  },
})
