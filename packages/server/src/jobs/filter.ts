import type { JobFilter as FilterQuery } from '@fencepost/client'
import type { JobFilter } from '@fencepost/engine'
import { z } from 'zod'
import type { Application } from '../application.ts'

/** The filters of jobs, with those that applications add. */
export interface Filters {
  /** A schema of the filter's own fields, and others, with the fields of applications. */
  extend<Shape extends z.core.$ZodLooseShape>(schema: z.ZodObject<Shape>): z.ZodObject<Shape>
  /** What the fields mean to the engine. */
  read(query: FilterQuery): JobFilter
}

export function filtersOf(applications: readonly Application[]): Filters {
  const own = Object.assign({}, ...applications.map(({ jobFilters }) => jobFilters ?? {})) as NonNullable<
    Application['jobFilters']
  >
  const more = Object.fromEntries(
    Object.entries(own).map(([name, { schema, description }]) => [name, schema.optional().describe(description)]),
  )
  return {
    extend: (schema) => z.strictObject({ ...schema.shape, ...more }),
    read: (query) => {
      const filter = engineFilter(query)
      for (const [name, { apply }] of Object.entries(own)) {
        const value = (query as Record<string, unknown>)[name]
        if (typeof value === 'string') Object.assign(filter, apply(value))
      }
      return filter
    },
  }
}

function engineFilter(query: FilterQuery): JobFilter {
  return given({
    status: query.status,
    operation: query.operation,
    queue: query.queue,
    errorCode: query.error_code,
    workerId: query.worker,
    submittedFrom: query.submitted_from,
    submittedBefore: query.submitted_before,
    completedFrom: query.completed_from,
    completedBefore: query.completed_before,
    text: query.text,
    parentJobId: query.parent,
    pipelineId: query.pipeline,
    lockKey: query.lock_key,
    tag: query.tag,
  })
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without the properties that are undefined. */
export function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
}
