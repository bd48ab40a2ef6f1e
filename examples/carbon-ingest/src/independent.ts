import { readFileSync } from 'node:fs'

/*
 * The carbon report once more, straight from the two files: no engine, no SQL, no rounding. Quantities are thousandths,
 * factors are millionths of a kilogram, so every product is a whole number of micrograms.
 */

export interface Line {
  orgUnit: string
  module: string
  dataType: string
  entries: number
  micrograms: bigint
}

/** What every org unit has caused by every data type, in the order of their names. */
export function computeReport(activities: string, factors: string): Line[] {
  const factorOf = new Map(
    recordsOf(factors).map(([module, dataType, category, kg]) => [`${module}/${dataType}/${category}`, scaled(kg, 6)]),
  )
  const lines = new Map<string, Line>()
  for (const [, , orgUnit = '', module = '', dataType = '', category = '', quantity] of recordsOf(activities)) {
    const key = `${orgUnit}/${module}/${dataType}`
    const factor = factorOf.get(`${module}/${dataType}/${category}`)
    if (factor === undefined) throw new Error(`${factors} has no factor for ${module}/${dataType}/${category}.`)
    const line = lines.get(key) ?? { orgUnit, module, dataType, entries: 0, micrograms: 0n }
    line.entries += 1
    line.micrograms += scaled(quantity, 3) * factor
    lines.set(key, line)
  }
  return [...lines].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line)
}

/** A decimal number as a whole one, so many digits after the point. More digits than that are an error. */
export function scaled(decimal: string | undefined, digits: number): bigint {
  const [, whole = '', fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(decimal ?? '') ?? []
  if (whole === '' || /[1-9]/.test(fraction.slice(digits))) {
    throw new Error(`${JSON.stringify(decimal)} is not a number with at most ${digits} digits after the point.`)
  }
  return BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'))
}

function recordsOf(file: string): string[][] {
  const [, ...lines] = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => line.split(','))
}
