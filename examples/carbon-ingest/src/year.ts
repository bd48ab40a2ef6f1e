import type { TransactionClient } from '@fencepost/engine'
import { z } from 'zod'

export const year = z.number().int().min(1990).max(2100)

/**
 * Keeps a year as it is until the transaction ends: `for update` by whoever changes what others read, `for share` by
 * whoever may go on beside his like.
 *
 * A dedup key says that a job for the same is already there; it cannot say whether that job has already read. With this
 * lock, a job that is there either has yet to read, and sees what was written, or has ended, and its key is free.
 */
export async function holdYear(
  client: TransactionClient,
  held: number,
  how: 'for share' | 'for update',
): Promise<void> {
  await client.query('insert into carbon.years values ($1) on conflict do nothing', [held])
  await client.query(`select from carbon.years where year = $1 ${how}`, [held])
}
