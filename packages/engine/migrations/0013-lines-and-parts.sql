-- A job that waits for its lock, and a job that goes on after its children.
--
-- waiting_run_after is null unless the job waits for its lock. It is then the run_after that the job gets together with
-- the lock. Until then run_after is the year 9999, so that no claim finds it, of this release or the one before.
--
-- next_part names the part that runs when the children have ended. From then on the operation of the row is
-- 'operation/part': only workers that have the part claim it, and those of the release before do not.
alter table live_jobs
  add column waiting_run_after timestamptz,
  add column next_part text,
  add column children_skipped jsonb,
  add constraint live_jobs_waiting check (
    waiting_run_after is null or (status = 'pending' and lock_key is not null and run_after > '9999-01-01 00:00+00'));
create index live_jobs_line on live_jobs (lock_key, job_id) where waiting_run_after is not null;

-- Gives each of these locks, if it is free, to the first job that waits for it; says how many.
--
-- A waiting job that somebody has locked is being cancelled: it is passed over. Workers are woken from inside, which
-- serializes the commits of those who hand over; so whoever ends a holder, of whichever release, wakes the next.
do $migration$
begin
  execute format($create$
    create function %1$I.hand_over_locks(lock_keys text[]) returns integer language plpgsql volatile as $body$
    declare
      handed integer;
    begin
      with first as materialized (
        select wanted.lock_key, line.job_id
          from (select distinct unnest(lock_keys) as lock_key) wanted
         cross join lateral (
           select job.job_id from %1$I.live_jobs job
            where job.lock_key = wanted.lock_key and job.waiting_run_after is not null
            order by job.job_id limit 1
              for no key update skip locked
         ) line
      ),
      taken as (
        insert into %1$I.resource_locks (lock_key, job_id, acquired_at)
        select lock_key, job_id, %1$I.clock() from first order by lock_key
        on conflict (lock_key) do nothing
        returning job_id
      ),
      released as (
        update %1$I.live_jobs set run_after = waiting_run_after, waiting_run_after = null
         where job_id = any(array(select job_id from taken))
        returning job_id, queue, lock_key
      ),
      told as (
        insert into %1$I.stored_events (job_id, ts, event, fields)
        select job_id, %1$I.clock(), 'job.lock_acquired', jsonb_build_object('lock_key', lock_key) from released
      ),
      woken as materialized (
        select pg_notify(%2$L, json_build_object('kind', 'wake', 'queue', queue)::text)
          from (select distinct queue from released) queues
      )
      select (select count(*) from released) + 0 * (select count(*) from woken) into handed;
      return handed;
    end
    $body$
  $create$, current_schema(), current_schema() || '_notices');

  -- Every way to free a lock deletes its row. Each statement in here sees what has been committed by then: also a job
  -- that began to wait while the delete itself waited for its transaction.
  execute format($create$
    create function %1$I.hand_over_freed_locks() returns trigger language plpgsql volatile as $body$
    begin
      if exists (select from %1$I.live_jobs job
                  where job.waiting_run_after is not null and job.lock_key = any(array(select lock_key from freed))) then
        perform %1$I.hand_over_locks(array(select lock_key from freed));
      end if;
      return null;
    end
    $body$
  $create$, current_schema());
end
$migration$;

create trigger resource_locks_hand_over after delete on resource_locks
  referencing old table as freed for each statement execute function hand_over_freed_locks();

create or replace view jobs as
select job_id, split_part(operation, '/', 1) as operation, queue, payload, status, priority,
       coalesce(waiting_run_after, run_after) as run_after, attempt_id, attempts, max_attempts,
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
       deferred_at,
       case when children_total is null then progress_current
            else (select count(*) from finished_jobs c where c.parent_job_id = j.job_id) end as progress_current,
       case when children_total is null then progress_total else children_total end as progress_total,
       result, error, error_code,
       submitted_at, submitted_by, started_at, null::timestamptz as completed_at, null::timestamptz as deleted_at,
       tags, timeout_ms, start_by,
       nullif(split_part(operation, '/', 2), '') as part, waiting_run_after is not null as waits_for_lock
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
       deferred_at,
       case when children_total is null then progress_current
            else (select count(*) from finished_jobs c where c.parent_job_id = j.job_id) end,
       case when children_total is null then progress_total else children_total end,
       result, error, error_code,
       submitted_at, submitted_by, started_at, completed_at, deleted_at, tags, timeout_ms, start_by,
       null, false
  from finished_jobs j;
