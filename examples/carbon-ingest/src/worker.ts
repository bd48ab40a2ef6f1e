import { openEngine, runWorker } from '@fencepost/engine'
import { operations } from './operations.ts'

// A worker process. DATABASE_URL says where; it ends with whoever started it, and otherwise by SIGTERM or SIGINT.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))

const engine = await openEngine({ operations, migrate: false, workerId: process.env['CARBON_WORKER'] ?? 'carbon' })
process.exit(await runWorker(engine, { concurrency: 4, pollMs: 1_000, sweepMs: 1_000 }))
