import { checkKey } from '../check.ts'
import type { Context } from '../context.ts'
import { findOperation, type Operation } from '../operation.ts'
import { deleteSchedule, isScheduleName, pauseSchedule, putSchedule, type ScheduleOptions } from './change.ts'
import {
  listSchedulePage,
  listSchedules,
  type Schedule,
  type SchedulePage,
  type SchedulePageOptions,
} from './schedule.ts'
import { submitDue, type SubmittedDue } from './submit-due.ts'

/** The schedules of one engine's schema. Workers that have the operation of a schedule submit its jobs. */
export class Schedules {
  readonly #context: Context

  constructor(context: Context) {
    this.#context = context
  }

  /** Makes the schedule of this name, or changes it. Safe to call at every start: an unchanged rule keeps its next time. */
  async put<Input>(
    name: string,
    operation: Operation<Input> | string,
    payload: Input,
    options: ScheduleOptions,
  ): Promise<Schedule> {
    const { database, limits, operations, wake } = this.#context
    const found = findOperation(operations, operation)
    const { maxPayloadBytes } = limits
    const put = await database.transaction('schedules', (db) =>
      putSchedule(db, found, { name, payload, options, maxPayloadBytes }),
    )
    wake.queues([found.queue]) // a worker that looks also learns when the next schedule is due
    return put
  }

  /** All of them, by name. */
  async list(): Promise<Schedule[]> {
    return listSchedules(this.#context.database)
  }

  /** A page of them, by name, bounded in number and in bytes. */
  async page(options: SchedulePageOptions): Promise<SchedulePage> {
    return listSchedulePage(this.#context.database, options)
  }

  async get(name: string): Promise<Schedule | undefined> {
    if (!isScheduleName(name)) return undefined
    const [found] = await listSchedules(this.#context.database, name)
    return found
  }

  /** Stops it until it is resumed. Undefined where there is no such schedule. */
  async pause(name: string, options: { by?: string } = {}): Promise<Schedule | undefined> {
    return this.#pause(name, true, options.by)
  }

  /** Lets it go on, from now: what was due while it was paused is not caught up. */
  async resume(name: string, options: { by?: string } = {}): Promise<Schedule | undefined> {
    return this.#pause(name, false, options.by)
  }

  /** Whether there was such a schedule. Jobs that it has submitted stay. */
  async delete(name: string): Promise<boolean> {
    return isScheduleName(name) && (await deleteSchedule(this.#context.database, name))
  }

  /** Submits what is due now, of these operations or all. Workers do so by themselves. */
  async submitDue(operations?: readonly string[]): Promise<SubmittedDue> {
    return submitDue(this.#context, operations ?? [...this.#context.operations.keys()])
  }

  async #pause(name: string, paused: boolean, by: string | undefined): Promise<Schedule | undefined> {
    const { database, operations, wake } = this.#context
    const checkedBy = checkKey(by, 'by')
    if (!isScheduleName(name)) return undefined
    const changed = await database.transaction('schedules', (db) => pauseSchedule(db, name, paused, checkedBy))
    const operation = changed === undefined ? undefined : operations.get(changed.operation)
    if (operation !== undefined) wake.queues([operation.queue])
    return changed
  }
}
