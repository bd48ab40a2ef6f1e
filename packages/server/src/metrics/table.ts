/** Every metric of /metrics. docs/reference/metrics.md lists the same table; a test compares. */
export const metricTable = {
  fencepost_jobs_pending: { type: 'gauge', help: 'Jobs that wait to be claimed, due or not.' },
  fencepost_jobs_due: { type: 'gauge', help: 'Jobs that wait to be claimed and are due.' },
  fencepost_jobs_running: { type: 'gauge', help: 'Jobs that a worker has.' },
  fencepost_jobs_deferred: { type: 'gauge', help: 'Jobs that wait for their children.' },
  fencepost_oldest_pending_age_seconds: {
    type: 'gauge',
    help: 'How long the job that has been due longest has waited.',
  },
  fencepost_workers: { type: 'gauge', help: 'Worker processes, alive or lost.' },
  fencepost_queue_paused: { type: 'gauge', help: '1 for each queue that is paused.' },
  fencepost_drain_level: { type: 'gauge', help: '0 when drain is off, 1 for submissions, 2 for all.' },
  fencepost_jobs_settled_total: { type: 'counter', help: 'Jobs that have ended since this server started.' },
  fencepost_job_duration_seconds: { type: 'histogram', help: 'From the first claim of a job to its end.' },
  fencepost_queue_wait_seconds: {
    type: 'histogram',
    help: 'How long an ended job had been due when it was last claimed.',
  },
  fencepost_stale_writebacks_total: { type: 'counter', help: 'Writes that the fence kept out.' },
  fencepost_lease_expiries_total: { type: 'counter', help: 'Attempts whose worker fell silent.' },
  fencepost_run_agains_total: { type: 'counter', help: 'Jobs that were run again.' },
  fencepost_timeouts_total: { type: 'counter', help: 'Attempts that took longer than their timeout.' },
  fencepost_jobs_unstarted_total: { type: 'counter', help: 'Jobs that failed because they had not started in time.' },
  fencepost_metrics_age_seconds: { type: 'gauge', help: 'How old the numbers of jobs are.' },
  fencepost_database_up: { type: 'gauge', help: '1 when the numbers could be read the last time it was tried.' },
  fencepost_http_requests_total: { type: 'counter', help: 'Requests that this server has answered.' },
  fencepost_http_request_duration_seconds: {
    type: 'histogram',
    help: 'How long requests took to be answered; streams are left out.',
  },
  fencepost_http_streams: { type: 'gauge', help: 'Streams of events that are open.' },
  fencepost_pool_connections: { type: 'gauge', help: 'Connections of this process to Postgres, idle or in use.' },
  fencepost_pool_waiting: { type: 'gauge', help: 'Statements that wait for a connection.' },
  nodejs_eventloop_lag_seconds: {
    type: 'gauge',
    help: 'How late the event loop was since the last scrape: mean, 99th percentile and most.',
  },
  process_cpu_seconds_total: { type: 'counter', help: 'Processor time that this process has used.' },
  process_start_time_seconds: { type: 'gauge', help: 'When this process started.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory that this process holds.' },
} as const

export type MetricName = keyof typeof metricTable
