import type { Filter, Row } from '@fencepost/iceberg'
import { beginTable, columns, dayMs, hourMs, micros, scaled, type LakeTable } from './lake-table.ts'
import { positionsOf } from './positions-of.ts'
import type { Seeded } from './seeded.ts'

const sites = ['Hamburg harbour', 'Rotterdam quay 4', 'Gdańsk terminal', 'Porto depot'] as const
const sensors = 50
const readingsPerDay = 2000

/** Every day the readings of sensors that turned out to be faulty are taken back, as deletion vectors. */
export const readings: LakeTable = {
  namespace: 'iot',
  name: 'readings',
  story: 'readings of faulty sensors, taken back: a deletion vector for each day',
  make: async (making) => {
    const { nowMs, scale } = making
    const days = scaled(14, scale, 5)
    const begin = Math.floor(nowMs / dayMs) * dayMs - days * dayMs
    const { table, random, at } = await beginTable(making, readings, begin, {
      formatVersion: 3,
      schema: {
        fields: columns({
          read_at: 'timestamptz',
          sensor_id: 'int',
          site: 'string',
          celsius: 'double',
          humidity: 'double',
          'battery_volts?': { type: 'decimal', precision: 5, scale: 3 },
        }),
      },
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 1, name: 'day', transform: { name: 'day' } }] },
      properties: { comment: 'Temperature and humidity in containers, every few minutes.' },
    })
    for (let day = 0; day < days; day += 1) {
      making.signal?.throwIfAborted()
      const from = begin + day * dayMs
      at(nowMs - 3 * dayMs + day * 2 * hourMs)
      await table.append(Array.from({ length: readingsPerDay }, (_, number) => reading(random, from, number)))
      at(nowMs - 3 * dayMs + day * 2 * hourMs + hourMs)
      await table.deletePositions(await positionsOf(table, faulty(from, 16 + random.below(4))))
      making.onProgress((day + 1) / days)
    }
    return table
  },
}

function reading(random: Seeded, from: number, number: number): Row {
  const sensor = number % sensors
  const hour = (number / readingsPerDay) * 24
  return {
    read_at: micros(from + (dayMs * number) / readingsPerDay),
    sensor_id: sensor,
    site: sites[sensor % sites.length] ?? sites[0],
    celsius: Math.round((4 + 3 * Math.sin((hour / 24) * 2 * Math.PI) + random.share()) * 10) / 10,
    humidity: Math.round((60 + 20 * random.share()) * 10) / 10,
    battery_volts: random.below(20) === 0 ? null : BigInt(2900 + random.below(700)),
  }
}

/** The rows of a day that faulty sensors wrote: the first so many of all sensors. */
function faulty(from: number, count: number): Filter {
  return {
    op: 'and',
    filters: [
      { op: '>=', column: 'read_at', value: micros(from) },
      { op: '<', column: 'read_at', value: micros(from + dayMs) },
      { op: '<', column: 'sensor_id', value: count },
    ],
  }
}
