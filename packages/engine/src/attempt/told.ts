import type { Context } from '../context.ts'
import type { CancelledRows } from '../lifecycle/cancel.ts'
import { afterwards } from './afterwards.ts'

/** What follows a cancel that is committed: workers are told, and parents that waited for just these are closed. */
export async function told(context: Context, rows: CancelledRows): Promise<void> {
  context.wake.cancelled(rows.running)
  context.wake.queues(rows.freed)
  await afterwards(
    context,
    rows.orphans.map((row) => row.parent_job_id),
  )
}
