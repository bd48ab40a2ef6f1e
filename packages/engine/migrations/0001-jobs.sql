-- The relations of the engine. Run with search_path set to the engine's schema, so that its name stays configurable.
--
-- Unfinished jobs and finished jobs are two tables, so that what is claimed and renewed all day lives in a small table
-- whose indexes hold nothing old. Ending a job moves its row. The public relation `jobs` is a view over both.

-- The one clock. statement_timestamp() and not now(): two jobs submitted in one transaction keep their order.
-- Tests replace this function with one that can be moved.
create function clock() returns timestamptz
  language sql stable parallel safe
  return statement_timestamp();

-- A time-ordered id (UUID version 7): 48 bits of milliseconds, then 12 bits that go on counting below the millisecond,
-- then random bits. `nth` makes the ids of one statement strictly ascending: id order is submission order, and a parent
-- always sorts before its children (the lock order of docs/concepts/lifecycle.md relies on it).
-- random() and date_part() for their speed; an id is a name and no secret.
create function new_job_id(at timestamptz, nth bigint) returns uuid
  language sql volatile parallel safe
  return encode(
    int8send(
      (((date_part('epoch', at) * 4096000)::bigint + nth) >> 12 << 16)
      | 28672
      | (((date_part('epoch', at) * 4096000)::bigint + nth) & 4095)
    ) || int8send((random() * 4611686018427387903)::bigint | (-9223372036854775808)),
    'hex'
  )::uuid;

-- The smallest id that a job submitted at that time can have.
create function job_id_floor(at timestamptz) returns uuid
  language sql stable parallel safe
  return rpad(encode(int8send((extract(epoch from at) * 1000)::bigint << 16), 'hex'), 32, '0')::uuid;

-- One sequence numbers all events, stored or derived.
create sequence event_ids as bigint;

create table live_jobs (
  job_id uuid primary key,
  operation text not null,
  queue text not null,
  payload jsonb not null,
  status text not null default 'pending',
  priority integer not null default 0,
  run_after timestamptz not null,
  attempt_id uuid,
  attempts integer not null default 0,
  max_attempts integer not null,
  locked_by text,
  locked_at timestamptz,
  lease_until timestamptz,
  lock_key text,
  slot_key text,
  dedup_key text,
  parent_job_id uuid,
  pipeline_id uuid,
  children_total integer,
  children_fail_at integer,
  deferred_at timestamptz,
  progress_current bigint,
  progress_total bigint,
  result jsonb,
  error text,
  error_code text,
  submitted_at timestamptz not null,
  submitted_by text,
  started_at timestamptz,
  submitted_event_id bigint not null default nextval('event_ids'),
  started_event_id bigint,
  -- What must hold, in as few words as possible: Postgres reads them anew for every statement that writes here.
  constraint live_jobs_attempts check (attempts >= 0 and attempts <= max_attempts and max_attempts >= 1),
  constraint live_jobs_status check (status in ('pending', 'running')),
  constraint live_jobs_fields check (
    case
      when status = 'pending' then attempts < max_attempts
        and num_nonnulls(attempt_id, lease_until, locked_by, locked_at, started_event_id, deferred_at) = 0
      when deferred_at is null then num_nulls(attempt_id, lease_until, locked_by, locked_at, started_at) = 0
      else num_nonnulls(attempt_id, lease_until) = 0 and children_total >= 1 and children_fail_at >= 1
    end
  )
)
-- Room on every page, so that renewals and progress stay heap-only updates; vacuumed early, because it churns.
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The claim's order, exactly. Future jobs sort behind the due ones of their priority.
create index live_jobs_claim on live_jobs (queue, priority, run_after, job_id) where status = 'pending';
-- The autoscaler's count, which asks for no queue. Small: the times of a bulk submission are all the same. A pending job
-- never has an attempt_id; that it says so keeps claims, which do not, from ever being planned over this index.
create index live_jobs_due on live_jobs (run_after) where status = 'pending' and attempt_id is null;
-- What the sweep and the autoscaler read. No index holds lease_until: renewing must stay a heap-only update.
create index live_jobs_running on live_jobs (job_id) where status = 'running';
create unique index live_jobs_one_running_per_slot on live_jobs (slot_key)
  where status = 'running' and slot_key is not null;
create unique index live_jobs_one_active_per_dedup_key on live_jobs (dedup_key) where dedup_key is not null;
create index live_jobs_lock on live_jobs (lock_key) where lock_key is not null;
create index live_jobs_parent on live_jobs (parent_job_id) where parent_job_id is not null;
create index live_jobs_pipeline on live_jobs (pipeline_id) where pipeline_id is not null;

create table finished_jobs (
  job_id uuid primary key,
  operation text not null,
  queue text not null,
  payload jsonb not null,
  status text not null,
  priority integer not null,
  run_after timestamptz not null,
  attempt_id uuid, -- the attempt that wrote the terminal state; null where no attempt did (cancel, expire, close)
  attempts integer not null,
  max_attempts integer not null,
  locked_by text,
  locked_at timestamptz,
  lock_key text,
  slot_key text,
  dedup_key text,
  parent_job_id uuid,
  pipeline_id uuid,
  children_total integer,
  deferred_at timestamptz,
  progress_current bigint,
  progress_total bigint,
  result jsonb,
  error text,
  error_code text,
  submitted_at timestamptz not null,
  submitted_by text,
  started_at timestamptz,
  completed_at timestamptz not null,
  deleted_at timestamptz,
  submitted_event_id bigint not null,
  started_event_id bigint,
  completed_event_id bigint,
  constraint finished_jobs_status check (status in ('completed', 'failed', 'cancelled')),
  constraint finished_jobs_attempts check (attempts between 0 and max_attempts),
  constraint finished_jobs_error check ((status = 'completed') = (error is null)),
  constraint finished_jobs_cancelled check (status <> 'cancelled' or attempt_id is null)
);

create index finished_jobs_unsuccessful on finished_jobs (status, job_id) where status <> 'completed';
create index finished_jobs_lock on finished_jobs (lock_key, job_id) where lock_key is not null;
create index finished_jobs_parent on finished_jobs (parent_job_id, status) where parent_job_id is not null;
create index finished_jobs_pipeline on finished_jobs (pipeline_id) where pipeline_id is not null;

-- Which job of a slot is current: one row, so one job, per slot. held_until keeps the slot from the next job while a
-- worker may still be at it: from claim to settlement, and after a cancel until attempt_id lets go or its lease passes.
create table slots (
  slot_key text primary key,
  job_id uuid not null,
  attempt_id uuid,
  held_until timestamptz
) with (fillfactor = 70);

create table resource_locks (
  lock_key text primary key,
  job_id uuid not null,
  attempt_id uuid, -- null while the job is pending or waits for its children
  acquired_at timestamptz not null,
  expires_at timestamptz,
  constraint resource_locks_expiry check ((attempt_id is null) = (expires_at is null))
) with (fillfactor = 70);

-- Events that were written down. job.submitted, job.completed and the job.started of an attempt that is still running
-- or has completed are not: the job's row says all of it, and most jobs have no other event.
create table stored_events (
  id bigint not null default nextval('event_ids'),
  job_id uuid not null,
  attempt_id uuid,
  ts timestamptz not null,
  level text not null default 'info',
  event text not null,
  message text,
  fields jsonb,
  primary key (job_id, id),
  constraint stored_events_level check (level in ('info', 'warning', 'error'))
);

create table job_steps (
  id bigint not null generated always as identity,
  job_id uuid not null,
  attempt_id uuid not null,
  ordinal integer not null,
  step text not null,
  success boolean not null,
  message text,
  error text,
  elapsed_seconds double precision,
  result jsonb,
  created_at timestamptz not null,
  primary key (job_id, id)
);

create table workers (
  worker_id text primary key,
  host text not null,
  pid integer not null,
  version text not null,
  operations text[] not null,
  concurrency integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
) with (fillfactor = 70);

create table settings (
  key text primary key,
  value text not null,
  updated_at timestamptz not null,
  updated_by text
);

-- Children are not counted, they are looked at: a child that has ended is one row of finished_jobs, so it counts once
-- by its own terminal transaction, whatever is retried, and ten thousand children never touch their parent's row.
create view jobs as
select job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts,
       locked_by, locked_at, lease_until, lock_key, slot_key,
       case when slot_key is null then false
            else exists (select from slots s where s.slot_key = j.slot_key and s.job_id = j.job_id) end as is_current,
       dedup_key, parent_job_id, pipeline_id, children_total,
       case when children_total is not null then
         (select count(*) from finished_jobs c where c.parent_job_id = j.job_id and c.status = 'completed')::integer
       end as children_completed,
       case when children_total is not null then
         (select count(*) from finished_jobs c where c.parent_job_id = j.job_id and c.status <> 'completed')::integer
       end as children_failed,
       deferred_at, progress_current, progress_total, result, error, error_code,
       submitted_at, submitted_by, started_at, null::timestamptz as completed_at, null::timestamptz as deleted_at
  from live_jobs j
union all
select job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts,
       locked_by, locked_at, null::timestamptz, lock_key, slot_key,
       case when slot_key is null then false
            else exists (select from slots s where s.slot_key = j.slot_key and s.job_id = j.job_id) end,
       dedup_key, parent_job_id, pipeline_id, children_total,
       case when children_total is not null then
         (select count(*) from finished_jobs c where c.parent_job_id = j.job_id and c.status = 'completed')::integer
       end,
       case when children_total is not null then
         (select count(*) from finished_jobs c where c.parent_job_id = j.job_id and c.status <> 'completed')::integer
       end,
       deferred_at, progress_current, progress_total, result, error, error_code,
       submitted_at, submitted_by, started_at, completed_at, deleted_at
  from finished_jobs j;

-- The autoscaler's relation. An attempt whose lease has passed counts as not claimed, although nobody has swept it yet:
-- with every worker dead, this count is what starts the next one.
create view job_queue as
select job_id, submitted_at as enqueued_at, run_after as visible_at, null::timestamptz as claimed_at,
       null::text as claimed_by, null::uuid as attempt_id, attempts as attempt_count
  from live_jobs
 where status = 'pending' and attempt_id is null
union all
select job_id, submitted_at, case when lease_until <= clock() then lease_until else run_after end,
       case when lease_until <= clock() then null else locked_at end,
       case when lease_until <= clock() then null else locked_by end,
       attempt_id, attempts
  from live_jobs
 where status = 'running';

create view job_events as
select id, job_id, attempt_id, ts, level, event, message, fields
  from stored_events
union all
select submitted_event_id, job_id, null, submitted_at, 'info', 'job.submitted', null,
       case when submitted_by is not null then jsonb_build_object('by', submitted_by) end
  from live_jobs
union all
select submitted_event_id, job_id, null, submitted_at, 'info', 'job.submitted', null,
       case when submitted_by is not null then jsonb_build_object('by', submitted_by) end
  from finished_jobs
union all
select started_event_id, job_id, attempt_id, locked_at, 'info', 'job.started', null,
       jsonb_build_object('worker', locked_by, 'attempt', attempts)
  from live_jobs
 where started_event_id is not null
union all
select started_event_id, job_id, attempt_id, locked_at, 'info', 'job.started', null,
       jsonb_build_object('worker', locked_by, 'attempt', attempts)
  from finished_jobs
 where started_event_id is not null
union all
select completed_event_id, job_id, attempt_id, completed_at, 'info', 'job.completed', null, null
  from finished_jobs
 where completed_event_id is not null;
