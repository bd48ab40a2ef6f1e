-- The tables of jobs again, with their columns in another order and an index on leases.
--
-- Columns of eight bytes come first, then those of four, then the rest: nothing is lost to alignment. What a claim
-- changes stands together: an update that stays on its page logs only the bytes from the first to the last change.
--
-- The public views are replaced, never dropped: what others were granted on them, and views of others over them, stay.

alter table live_jobs rename to live_jobs_before;
alter table finished_jobs rename to finished_jobs_before;

create table live_jobs (
  submitted_at timestamptz not null,
  run_after timestamptz not null,
  submitted_event_id bigint not null default nextval('event_ids'),
  job_id uuid not null,
  priority integer not null default 0,
  max_attempts integer not null,
  -- from here: what a claim changes
  locked_at timestamptz,
  lease_until timestamptz,
  started_at timestamptz,
  started_event_id bigint,
  deferred_at timestamptz,
  progress_current bigint,
  progress_total bigint,
  children_total integer,
  children_fail_at integer,
  attempts integer not null default 0,
  status text not null default 'pending',
  attempt_id uuid,
  locked_by text,
  -- to here
  operation text not null,
  queue text not null,
  payload jsonb not null,
  parent_job_id uuid,
  pipeline_id uuid,
  lock_key text,
  slot_key text,
  dedup_key text,
  submitted_by text,
  result jsonb,
  error text,
  error_code text
)
-- Room on every page for a second version of each of its rows: a claim changes all rows of a page at once, and one that
-- finds no room logs the whole row instead of the change. Vacuumed early, because it churns.
with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create table finished_jobs (
  submitted_at timestamptz not null,
  run_after timestamptz not null,
  locked_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz not null,
  submitted_event_id bigint not null,
  started_event_id bigint,
  completed_event_id bigint,
  job_id uuid not null,
  priority integer not null,
  attempts integer not null,
  max_attempts integer not null,
  children_total integer,
  deferred_at timestamptz,
  progress_current bigint,
  progress_total bigint,
  deleted_at timestamptz,
  status text not null,
  attempt_id uuid, -- the attempt that wrote the terminal state; null where no attempt did (cancel, expire, close)
  locked_by text,
  operation text not null,
  queue text not null,
  payload jsonb not null,
  parent_job_id uuid,
  pipeline_id uuid,
  lock_key text,
  slot_key text,
  dedup_key text,
  submitted_by text,
  result jsonb,
  error text,
  error_code text
);

insert into live_jobs (
  job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
  locked_at, lease_until, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total, children_fail_at,
  deferred_at, progress_current, progress_total, result, error, error_code, submitted_at, submitted_by, started_at,
  submitted_event_id, started_event_id)
select job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
       locked_at, lease_until, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total,
       children_fail_at, deferred_at, progress_current, progress_total, result, error, error_code, submitted_at,
       submitted_by, started_at, submitted_event_id, started_event_id
  from live_jobs_before order by job_id;

insert into finished_jobs (
  job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
  locked_at, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total, deferred_at, progress_current,
  progress_total, result, error, error_code, submitted_at, submitted_by, started_at, completed_at, deleted_at,
  submitted_event_id, started_event_id, completed_event_id)
select job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
       locked_at, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total, deferred_at,
       progress_current, progress_total, result, error, error_code, submitted_at, submitted_by, started_at,
       completed_at, deleted_at, submitted_event_id, started_event_id, completed_event_id
  from finished_jobs_before order by completed_at;

-- Children are not counted, they are looked at: a child that has ended is one row of finished_jobs, so it counts once
-- by its own terminal transaction, whatever is retried, and ten thousand children never touch their parent's row.
create or replace view jobs as
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
-- with every worker dead, this count is what starts the next one. Running jobs are two parts of it, each with an index
-- that answers what is asked of it.
create or replace view job_queue as
select job_id, submitted_at as enqueued_at, run_after as visible_at, null::timestamptz as claimed_at,
       null::text as claimed_by, null::uuid as attempt_id, attempts as attempt_count
  from live_jobs
 where status = 'pending' and attempt_id is null
union all
select job_id, submitted_at, lease_until, null, null, attempt_id, attempts
  from live_jobs
 where status = 'running' and lease_until <= clock()
union all
select job_id, submitted_at, run_after, locked_at, locked_by, attempt_id, attempts
  from live_jobs
 where status = 'running' and (lease_until > clock() or lease_until is null);

create or replace view job_events as
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

-- Now that no view reads them any more.
drop table live_jobs_before;
drop table finished_jobs_before;

-- What must hold, in as few words as possible: Postgres reads them anew for every statement that writes here.
alter table live_jobs
  add constraint live_jobs_pkey primary key (job_id),
  add constraint live_jobs_attempts check (attempts >= 0 and attempts <= max_attempts and max_attempts >= 1),
  add constraint live_jobs_status check (status in ('pending', 'running')),
  add constraint live_jobs_fields check (
    case
      when status = 'pending' then attempts < max_attempts
        and num_nonnulls(attempt_id, lease_until, locked_by, locked_at, started_event_id, deferred_at) = 0
      when deferred_at is null then num_nulls(attempt_id, lease_until, locked_by, locked_at, started_at) = 0
      else num_nonnulls(attempt_id, lease_until) = 0 and children_total >= 1 and children_fail_at >= 1
    end
  );

alter table finished_jobs
  add constraint finished_jobs_pkey primary key (job_id),
  add constraint finished_jobs_status check (status in ('completed', 'failed', 'cancelled')),
  add constraint finished_jobs_attempts check (attempts between 0 and max_attempts),
  add constraint finished_jobs_error check ((status = 'completed') = (error is null)),
  add constraint finished_jobs_cancelled check (status <> 'cancelled' or attempt_id is null);

-- The claim's order, exactly. Future jobs sort behind the due ones of their priority.
create index live_jobs_claim on live_jobs (queue, priority, run_after, job_id) where status = 'pending';
-- The autoscaler's count, which asks for no queue. Small: the times of a bulk submission are all the same. A pending job
-- never has an attempt_id; that it says so keeps claims, which do not, from ever being planned over this index.
create index live_jobs_due on live_jobs (run_after) where status = 'pending' and attempt_id is null;
-- What the sweep and the autoscaler read: the passed leases are its head, however many jobs run; deferred parents, which
-- have no lease, are its end. Renewing is therefore no heap-only update; few jobs run long enough to be renewed. Every
-- running job has one or the other; that it says so keeps settlements, which do not, from being planned over this index.
create index live_jobs_lease on live_jobs (lease_until)
  where status = 'running' and (lease_until is not null or deferred_at is not null);
-- Always empty: a running job has been claimed. Asked for jobs that are not, job_queue sees at once that none of the
-- running ones is.
create index live_jobs_running_unclaimed on live_jobs (job_id) where status = 'running' and locked_at is null;
create unique index live_jobs_one_running_per_slot on live_jobs (slot_key)
  where status = 'running' and slot_key is not null;
create unique index live_jobs_one_active_per_dedup_key on live_jobs (dedup_key) where dedup_key is not null;
create index live_jobs_lock on live_jobs (lock_key) where lock_key is not null;
create index live_jobs_parent on live_jobs (parent_job_id) where parent_job_id is not null;
create index live_jobs_pipeline on live_jobs (pipeline_id) where pipeline_id is not null;

create index finished_jobs_unsuccessful on finished_jobs (status, job_id) where status <> 'completed';
create index finished_jobs_lock on finished_jobs (lock_key, job_id) where lock_key is not null;
create index finished_jobs_parent on finished_jobs (parent_job_id, status) where parent_job_id is not null;
create index finished_jobs_pipeline on finished_jobs (pipeline_id) where pipeline_id is not null;
create index finished_jobs_lately on finished_jobs using brin (completed_at)
  with (pages_per_range = 32, autosummarize = on);
