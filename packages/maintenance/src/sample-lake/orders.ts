import type { Row } from '@fencepost/iceberg'
import { beginTable, columns, dayMs, hourMs, micros, scaled, type LakeTable } from './lake-table.ts'
import { positionsOf } from './positions-of.ts'
import type { Seeded } from './seeded.ts'

const products = ['desk lamp', 'office chair', 'monitor arm', 'keyboard', 'headset', 'webcam', 'whiteboard'] as const
const statuses = ['paid', 'paid', 'paid', 'shipped', 'shipped', 'delivered', 'delivered', 'delivered'] as const
const currencies = ['EUR', 'EUR', 'USD', 'GBP'] as const

const ordersPerPeriod = 600
/** Orders are withdrawn within so many periods of 30 days. */
const openPeriods = 2

/** Orders that were withdrawn are deleted by their positions, a few at a time: many small delete files. */
export const orders: LakeTable = {
  namespace: 'sales',
  name: 'orders',
  story: 'withdrawn orders, deleted a few at a time: files of position deletes',
  make: async (making) => {
    const { nowMs, scale } = making
    const periods = scaled(36, scale, 12)
    const begin = nowMs - periods * 30 * dayMs
    const { table, random, at } = await beginTable(making, orders, begin, {
      schema: {
        fields: columns({
          order_id: 'long',
          ordered_at: 'timestamptz',
          period: 'int',
          customer_id: 'long',
          product: 'string',
          quantity: 'int',
          amount: { type: 'decimal', precision: 12, scale: 2 },
          currency: 'string',
          status: 'string',
        }),
        identifierFieldIds: [1],
      },
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 3, name: 'period', transform: { name: 'identity' } }] },
      properties: {
        'write.delete.granularity': 'partition',
        comment: 'Orders of the web shop, by period of 30 days.',
      },
    })
    at(nowMs - 4 * dayMs)
    await table.append(allOrders(random, periods, begin))
    const open = await positionsOf(table, { op: '>=', column: 'period', value: periods - openPeriods })
    const recent = [...open].map(([path, rows]): [string, Set<number>] => [path, new Set(rows)])
    const commits = scaled(90, scale, 8)
    for (let commit = 0; commit < commits; commit += 1) {
      making.signal?.throwIfAborted()
      at(nowMs - 4 * dayMs + (commit + 1) * hourMs)
      const withdrawn = recent.map(([path, rows]): [string, number[]] => [path, nextPositions(random, rows)])
      await table.deletePositions(new Map(withdrawn))
      making.onProgress((commit + 1) / commits)
    }
    return table
  },
}

function allOrders(random: Seeded, periods: number, begin: number): Row[] {
  return Array.from({ length: periods * ordersPerPeriod }, (_, number): Row => {
    const period = Math.floor(number / ordersPerPeriod)
    const quantity = 1 + random.skewed(6)
    return {
      order_id: BigInt(100_000 + number),
      ordered_at: micros(begin + (number * 30 * dayMs) / ordersPerPeriod),
      period,
      customer_id: BigInt(1 + random.skewed(2000)),
      product: random.pick(products),
      quantity,
      amount: BigInt(quantity * (999 + random.below(250) * 100)),
      currency: random.pick(currencies),
      status: random.pick(statuses),
    }
  })
}

/** One or two of the rows that are still there. Few enough in all for the file to be worth keeping. */
function nextPositions(random: Seeded, rows: Set<number>): number[] {
  const left = [...rows].toSorted((a, b) => a - b)
  const chosen = new Set(Array.from({ length: 1 + random.below(2) }, () => left[random.below(left.length)] ?? 0))
  for (const row of chosen) rows.delete(row)
  return [...chosen]
}
