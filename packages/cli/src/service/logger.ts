import type { Logger } from '@fencepost/engine'
import type { Output } from '../output/output.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof levels)[number]

/** Lines on standard error: readable, or JSON with --json. */
export function createLogger(output: Output, least: Level | 'silent'): Logger {
  const from = least === 'silent' ? levels.length : levels.indexOf(least)
  const at = (level: Level) =>
    levels.indexOf(level) < from
      ? () => {}
      : (fields: Record<string, unknown>, message: string) => output.log(lineOf(output.json, level, fields, message))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function lineOf(json: boolean, level: Level, fields: Record<string, unknown>, message: string): string {
  const { err, ...rest } = fields
  const told = err === undefined ? rest : { ...rest, error: err instanceof Error ? err.message : JSON.stringify(err) }
  const time = new Date().toISOString()
  if (json) return JSON.stringify({ time, level, message, ...told })
  const pairs = Object.entries(told).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return [time, level.padEnd(5), message, ...pairs].join(' ')
}
