import type { Row } from '@fencepost/iceberg'
import { beginTable, columns, dayMs, hourMs, micros, scaled, type LakeTable } from './lake-table.ts'
import type { Seeded } from './seeded.ts'

const firstNames = ['Ada', 'Alan', 'Barbara', 'Edsger', 'Frances', 'Grace', 'Katherine', 'Linus', 'Margaret'] as const
const lastNames = [
  'Allen',
  'Hamilton',
  'Hopper',
  'Johnson',
  'Kowalski',
  'Liskov',
  'Lovelace',
  'Okafor',
  'Tanaka',
] as const
const cities = ['Amsterdam', 'Berlin', 'Bengaluru', 'Dublin', 'Kraków', 'Lagos', 'Lisbon', 'London', 'Osaka'] as const
const tiers = ['free', 'free', 'free', 'pro', 'pro', 'enterprise'] as const

const count = 2000
const changesPerCommit = 25

/** Change data from a database: every change deletes the old row by its key and adds the new one. */
export const customers: LakeTable = {
  namespace: 'sales',
  name: 'customers',
  story: 'change data from a database: an equality delete with every commit',
  make: async (making) => {
    const { nowMs, scale } = making
    const { table, random, at } = await beginTable(making, customers, nowMs - 40 * dayMs, {
      schema: {
        fields: columns({
          customer_id: 'long',
          name: 'string',
          email: 'string',
          city: 'string',
          tier: 'string',
          changed_at: 'timestamptz',
        }),
        identifierFieldIds: [1],
      },
      properties: { comment: 'Customers, as the database of the web shop has them.' },
    })
    at(nowMs - 3 * dayMs)
    const begin = nowMs - 3 * dayMs
    await table.append(Array.from({ length: count }, (_, number) => customer(random, number + 1, begin)))
    const commits = scaled(40, scale, 8)
    for (let commit = 0; commit < commits; commit += 1) {
      making.signal?.throwIfAborted()
      const ms = begin + (commit + 1) * hourMs
      at(ms)
      const ids = [...new Set(Array.from({ length: changesPerCommit }, () => 1 + random.skewed(count)))]
      await table.deleteEqual(
        ['customer_id'],
        ids.map((id) => ({ customer_id: BigInt(id) })),
        { append: ids.map((id) => customer(random, id, ms)) },
      )
      making.onProgress((commit + 1) / commits)
    }
    return table
  },
}

function customer(random: Seeded, id: number, changedMs: number): Row {
  const [first, last] = [random.pick(firstNames), random.pick(lastNames)]
  return {
    customer_id: BigInt(id),
    name: `${first} ${last}`,
    email: `${first}.${last}${id}@example.com`.toLowerCase(),
    city: random.pick(cities),
    tier: random.pick(tiers),
    changed_at: micros(changedMs),
  }
}
