import type { Schedule } from '@fencepost/client'
import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { upTo } from './jobs/limit.ts'
import { readPayload } from './jobs/payload.ts'
import { plain } from './output/plain.ts'
import { table } from './output/table.ts'

const named = { name: { description: 'The name of the schedule.' } }

export const listSchedules = command({
  name: 'schedules list',
  summary: 'Lists the schedules, with their next due times',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await upTo(undefined, connect(settings).eachSchedule())
    const rows = found.map((one) => [
      plain(one.name),
      plain(one.operation),
      plain(ruleOf(one)),
      one.paused_at === null ? (one.next_times[0] ?? '') : output.style('yellow', 'paused'),
      plain(one.last_outcome ?? ''),
    ])
    output.answer(found, () =>
      rows.length === 0 ? 'No schedules.' : table(['NAME', 'OPERATION', 'RULE', 'NEXT', 'LAST'], rows),
    )
  },
})

export const setSchedule = command({
  name: 'schedules set',
  summary: 'Makes a schedule, or changes it',
  arguments: { ...named, operation: { description: 'The name of the operation.' } },
  options: {
    payload: {
      kind: 'text',
      placeholder: 'json',
      description: 'The payload of its jobs as JSON; @path reads a file, - reads standard input.',
      default: '{}',
    },
    cron: {
      kind: 'text',
      placeholder: 'expression',
      description: 'Five fields, or six with seconds first, or @daily.',
    },
    timeZone: {
      kind: 'text',
      placeholder: 'zone',
      description: 'The IANA name of the zone of --cron; UTC if left out.',
    },
    everyMs: { kind: 'integer', placeholder: 'ms', description: 'An interval instead of --cron.', min: 1_000 },
    catchUp: {
      kind: 'text',
      choices: ['once', 'all', 'skip'],
      description: 'What to do about missed due times: submit once for all of them, for each, or for none.',
      default: 'once',
    },
    overlap: {
      kind: 'text',
      choices: ['allow', 'skip', 'queue'],
      description: 'What to do while the job before has not ended: submit another, none, or one that waits.',
      default: 'skip',
    },
    queue: { kind: 'text', placeholder: 'name', description: 'Instead of the operation’s.' },
    priority: { kind: 'integer', placeholder: 'number', description: 'Smaller is sooner; 0 if left out.' },
    maxAttempts: { kind: 'integer', placeholder: 'number', description: 'Instead of the operation’s.', min: 1 },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const { payload, timeZone, everyMs, catchUp, overlap, maxAttempts, ...rest } = options
    const put = await connect(settings).putSchedule(args.name, {
      operation: args.operation,
      payload: readPayload(payload, 'schedules set'),
      time_zone: timeZone,
      every_ms: everyMs,
      catch_up: catchUp,
      overlap,
      max_attempts: maxAttempts,
      ...rest,
    })
    output.answer(
      put,
      () => `Schedule ${plain(put.name)} is next due at ${put.next_times[0] ?? 'no time: it is paused'}.`,
    )
  },
})

export const pauseSchedule = command({
  name: 'schedules pause',
  summary: 'Stops a schedule until it is resumed',
  arguments: named,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const paused = await connect(settings).pauseSchedule(args.name)
    output.answer(paused, () => `Schedule ${plain(paused.name)} is paused.`)
  },
})

export const resumeSchedule = command({
  name: 'schedules resume',
  summary: 'Lets a schedule go on, from now: what was due while it was paused is not caught up',
  arguments: named,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const resumed = await connect(settings).resumeSchedule(args.name)
    output.answer(resumed, () => `Schedule ${plain(resumed.name)} is next due at ${resumed.next_times[0] ?? ''}.`)
  },
})

export const deleteSchedule = command({
  name: 'schedules delete',
  summary: 'Removes a schedule; jobs that it has submitted stay',
  arguments: named,
  settings: clientSettings,
  async run({ args, settings, output }) {
    await connect(settings).deleteSchedule(args.name)
    output.answer({ name: args.name, deleted: true }, () => `Schedule ${plain(args.name)} is deleted.`)
  },
})

function ruleOf({ cron, time_zone: timeZone, every_ms: everyMs }: Schedule): string {
  return cron === null ? `every ${everyMs} ms` : `${cron} ${timeZone}`
}
