import { FencepostError } from '../errors.ts'

export type Settings = Readonly<Record<string, string | number | boolean>>

/** Settings every embedded server has; the rest is as Postgres ships it, which suits a small machine. */
const always: Settings = {
  listen_addresses: '127.0.0.1',
  // No socket file: its path would have to be shorter than 107 bytes, and the folder is where the user wants it.
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Its statements are short, and compiling them takes longer than running them.
  jit: false,
  // The log is for what happens to the server. A failed statement is its caller's to report.
  log_destination: 'stderr',
  logging_collector: false,
  log_min_messages: 'log',
  log_checkpoints: false,
}

const notDurable: Settings = { fsync: false, synchronous_commit: false, full_page_writes: false }

/** The arguments that give the server its settings. The caller's come last, and win. */
export function settingArguments(port: number, durable: boolean, extra: Settings): string[] {
  const all = { ...always, port, ...(durable ? {} : notDurable), ...extra }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${settingValue(value)}`])
}

/** Refuses names that cannot be a setting; what Postgres thinks of the values it says itself, in the log. */
export function checkSettings(settings: Settings): Settings {
  for (const name of Object.keys(settings)) {
    if (/^[a-z_][a-z0-9_.]*$/i.test(name)) continue
    throw new FencepostError('options_invalid', `"${name}" cannot be the name of a Postgres setting.`, {
      details: { name },
    })
  }
  return settings
}

function settingValue(value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return String(value)
}
