import { raw } from '../../src/database/sql.ts'
import type { Engine } from '../../src/engine.ts'
import type { Bed, Held } from '../bed.ts'

const name = 'stoppable'
const advisory = 4711

/**
 * An engine whose statements can be stopped half-way: after they have taken their snapshot and before they have locked a
 * row. That is when they first ask for the time, so the clock makes them wait. Volatile, because the planner asks a
 * stable one before there is a snapshot. For the whole database of the bed, for good.
 */
export async function openStoppable(
  bed: Bed,
  hooks: Parameters<Bed['open']>[1] = {},
): Promise<{ engine: Engine; stop: () => Promise<Held<unknown>> }> {
  await bed.query(`
    create or replace function fencepost.clock() returns timestamptz language plpgsql volatile as $$
      begin
        if current_setting('application_name') = '${name}' then
          perform pg_advisory_lock_shared(${advisory}), pg_advisory_unlock_shared(${advisory});
        end if;
        return statement_timestamp() + (select ahead from fencepost.test_clock);
      end $$`)
  const url = new URL(bed.url)
  url.searchParams.set('application_name', name)
  return {
    engine: await bed.open({ database: url.href }, hooks),
    stop: () => bed.hold((db) => db.query('stop', raw(`select pg_advisory_xact_lock(${advisory})`))),
  }
}
