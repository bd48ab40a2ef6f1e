import { openEngine, runWorker } from '@fencepost/engine'
import { openPool } from './database.ts'
import { annotationOperations } from './operations/operations.ts'

// A worker process: DATABASE_URL says where. It ends with whoever started it.

const pool = openPool(process.env['DATABASE_URL'] ?? '')
const engine = await openEngine({ migrate: false, operations: Object.values(annotationOperations(pool)) })
process.on('disconnect', () => process.exit(1))
const code = await runWorker(engine, { concurrency: 4, pollMs: 500, sweepMs: 500 })
await pool.end()
process.exit(code)
