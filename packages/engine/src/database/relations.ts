import { identifier, raw, sql, type Sql } from './sql.ts'

/** The relations and functions of one engine's schema, ready to be spliced into statements. */
export type Relations = ReturnType<typeof relationsOf>

/** A relation of the schema by its name, ready to be spliced into statements. */
export function relationOf(schema: string, name: string): Sql {
  return sql`${identifier(schema)}.${identifier(name)}`
}

export function relationsOf(schema: string) {
  const within = (name: string): Sql => relationOf(schema, name)
  return {
    schema,
    liveJobs: within('live_jobs'),
    finishedJobs: within('finished_jobs'),
    jobs: within('jobs'),
    jobEvents: within('job_events'),
    storedEvents: within('stored_events'),
    jobSteps: within('job_steps'),
    resourceLocks: within('resource_locks'),
    slots: within('slots'),
    workers: within('workers'),
    settings: within('settings'),
    pausedQueues: within('paused_queues'),
    schedules: within('schedules'),
    runAgains: within('run_agains'),
    bulkActs: within('bulk_acts'),
    sweeps: within('sweeps'),
    migrations: within('migrations'),
    packageMigrations: within('package_migrations'),
    eventIds: within('event_ids'),
    newJobId: within('new_job_id'),
    submitJob: within('submit_job'),
    handOverLocks: within('hand_over_locks'),
    jobIdFloor: within('job_id_floor'),
    /** Postgres's time, movable in tests. */
    now: sql`${within('clock')}()`,
    nextEventId: sql`nextval(${raw(`'${identifier(schema).text.replaceAll("'", "''")}.event_ids'`)})`,
  }
}
