-- Jobs that are submitted at set times. One row is one schedule; whoever submits for it holds the row meanwhile.
create table schedules (
  name text primary key,
  operation text not null,
  payload jsonb not null,
  -- Of its submissions: queue, priority, max_attempts. Null: as the operation says.
  queue text,
  priority integer not null default 0,
  max_attempts integer,
  cron text,
  time_zone text,
  every_ms bigint,
  catch_up text not null,
  overlap text not null,
  -- The first due time that has not been dealt with.
  next_at timestamptz not null,
  paused_at timestamptz,
  last_due_at timestamptz,
  last_outcome text,
  last_job_id uuid,
  last_error text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  updated_by text,
  constraint schedules_one_rule check ((cron is null) <> (every_ms is null) and (cron is null) = (time_zone is null)),
  constraint schedules_catch_up check (catch_up in ('once', 'all', 'skip')),
  constraint schedules_overlap check (overlap in ('allow', 'skip', 'queue'))
);
create index schedules_next on schedules (next_at) where paused_at is null;
