import { defineConfig } from 'fencepost'

export default defineConfig({ concurrency: 3, queues: ['slow'] })
