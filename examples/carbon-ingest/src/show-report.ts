import { computeReport, type Line } from './independent.ts'
import type { Report } from './report.ts'
import { grouped, type Screen } from './screen.ts'

const microgramsPerTonne = 1_000_000_000_000n
const barWidth = 30

/** Prints a report by data type, and whether an independent calculation from the same files comes to the same. */
export function showReport(screen: Screen, report: Report, files: { activities: string; factors: string }): void {
  const total = report.micrograms
  screen.say(`\n  Report ${report.reportId}: ${grouped(report.entries)} entries, ${tonnes(total)} t CO2e`)
  for (const [name, kg] of byDataType(report.lines)) {
    const bar = '█'.repeat(Number((kg * BigInt(barWidth) + total / 2n) / total))
    screen.say(`    ${name.padEnd(22)} ${tonnes(kg).padStart(12)} t  ${screen.style('cyan', bar)}`)
  }
  const expected = computeReport(files.activities, files.factors)
  if (!sameLines(report.lines, expected) || total !== sumOf(expected)) {
    throw new Error(
      `Report ${report.reportId} is not what an independent calculation comes to: ${kilograms(sumOf(expected))} kg.`,
    )
  }
  screen.say(
    `  ${screen.style('green', '✓')} ${expected.length} lines and the total of ${kilograms(total)} kg are those of an independent calculation, ` +
      'to the last digit.',
  )
}

function byDataType(lines: readonly Line[]): [string, bigint][] {
  const sums = new Map<string, bigint>()
  for (const { module, dataType, micrograms } of lines) {
    const name = `${module}/${dataType}`
    sums.set(name, (sums.get(name) ?? 0n) + micrograms)
  }
  return [...sums].sort(([, a], [, b]) => (a < b ? 1 : -1))
}

function sameLines(lines: readonly Line[], expected: readonly Line[]): boolean {
  const text = (some: readonly Line[]) => some.map((line) => Object.values(line).join()).join('\n')
  return text(lines) === text(expected)
}

function sumOf(lines: readonly Line[]): bigint {
  return lines.reduce((sum, { micrograms }) => sum + micrograms, 0n)
}

function tonnes(micrograms: bigint): string {
  const tenths = (micrograms * 10n + microgramsPerTonne / 2n) / microgramsPerTonne
  return `${grouped(tenths / 10n)}.${tenths % 10n}`
}

function kilograms(micrograms: bigint): string {
  return `${grouped(micrograms / 1_000_000_000n)}.${String(micrograms % 1_000_000_000n).padStart(9, '0')}`
}
