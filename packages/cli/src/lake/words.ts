import type { TableHealth } from '@fencepost/maintenance'
import type { Style } from '../output/output.ts'

export const bandStyles: Readonly<Record<TableHealth['band'], Style>> = {
  good: 'green',
  fair: 'yellow',
  poor: 'red',
  bad: 'red',
}

const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const

export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export function secondsText(seconds: number): string {
  return seconds >= 10 ? `${seconds.toFixed(0)} s` : `${seconds.toFixed(2)} s`
}
