import type { Context } from '../context.ts'
import { closeParents } from '../lifecycle/close.ts'

/** Closes those of these parents whose last child has ended. The sweep does the same, so an error here loses nothing. */
export async function afterwards(context: Context, parents: Iterable<string | null | undefined>): Promise<void> {
  const ids = [...parents].filter((id) => id !== null && id !== undefined)
  if (ids.length === 0) return
  try {
    await closeParents(context.database, ids, (queue) => context.wake.queues([queue]))
  } catch (error) {
    context.logger.warn({ err: error, parents: ids }, 'parent_not_closed')
  }
}
