import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/*
 * The sample: a year of a university. The same on every machine, because nothing in it is random: a small generator of
 * numbers with a fixed start decides everything, in whole numbers only.
 */

export const sampleYear = 2025
export const sampleRows = 100_000

const orgUnits = [
  'architecture',
  'arts',
  'biology',
  'chemistry',
  'computing',
  'economics',
  'engineering',
  'law',
  'library',
  'mathematics',
  'medicine',
  'physics',
]

interface Kind {
  module: string
  dataType: string
  categories: readonly string[]
  /** Of a hundred entries, so many are of this kind. */
  share: number
  /** The quantity of an entry in thousandths: kilometres, kilowatt hours, or hours. */
  least: number
  most: number
}

const kinds: readonly Kind[] = [
  {
    module: 'travel',
    dataType: 'plane',
    categories: ['short_haul', 'medium_haul', 'long_haul'],
    share: 12,
    least: 210_000,
    most: 9_800_000,
  },
  {
    module: 'travel',
    dataType: 'train',
    categories: ['regional', 'intercity', 'high_speed'],
    share: 30,
    least: 4_000,
    most: 900_000,
  },
  {
    module: 'travel',
    dataType: 'car',
    categories: ['petrol', 'diesel', 'electric'],
    share: 18,
    least: 2_000,
    most: 640_000,
  },
  {
    module: 'buildings',
    dataType: 'electricity',
    categories: ['hydro', 'solar', 'grid_mix'],
    share: 16,
    least: 90_000,
    most: 7_400_000,
  },
  {
    module: 'buildings',
    dataType: 'heating',
    categories: ['district', 'gas', 'oil'],
    share: 10,
    least: 120_000,
    most: 5_200_000,
  },
  {
    module: 'computing',
    dataType: 'cloud',
    categories: ['compute', 'storage', 'accelerator'],
    share: 14,
    least: 1,
    most: 720_000,
  },
]

/** The CSV with so many rows. Another start gives other rows. */
export function sampleCsv(rows = sampleRows, start = 1): string {
  const next = numbers(start)
  const byShare = kinds.flatMap((kind) => Array.from({ length: kind.share }, () => kind))
  const lines = ['entry_id,day,org_unit,module,data_type,category,quantity']
  for (let entry = 1; entry <= rows; entry += 1) {
    const kind = pick(byShare, next)
    const day = new Date(Date.UTC(sampleYear, 0, 1 + next(365))).toISOString().slice(0, 10)
    const thousandths = kind.least + next(kind.most - kind.least)
    const quantity = `${Math.floor(thousandths / 1000)}.${String(thousandths % 1000).padStart(3, '0')}`
    const category = pick(kind.categories, next)
    lines.push(`${entry},${day},${pick(orgUnits, next)},${kind.module},${kind.dataType},${category},${quantity}`)
  }
  return `${lines.join('\n')}\n`
}

/** Writes a sample unless it is there; one that is written halfway never is. */
export function ensureSample(path: string, rows = sampleRows, start = 1): void {
  if (existsSync(path)) return
  mkdirSync(dirname(path), { recursive: true })
  const unfinished = `${path}.${process.pid}`
  writeFileSync(unfinished, sampleCsv(rows, start))
  renameSync(unfinished, path)
}

/** Whole numbers from 0 up to a limit, always the same ones: a linear congruential generator, of which the high bits. */
function numbers(start: number): (limit: number) => number {
  let state = BigInt(start)
  return (limit) => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffff_ffff_ffff_ffffn
    return Number(state >> 33n) % limit
  }
}

function pick<T>(from: readonly T[], next: (limit: number) => number): T {
  return from[next(from.length)] as T
}
