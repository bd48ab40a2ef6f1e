-- A job that waits for children, or has waited, is as far as its children are: those that have ended, of all of them. It
-- is read from the children's own rows, like their numbers, so that none of them touches the row of its parent.
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
       deferred_at,
       case when children_total is null then progress_current
            else (select count(*) from finished_jobs c where c.parent_job_id = j.job_id) end as progress_current,
       case when children_total is null then progress_total else children_total end as progress_total,
       result, error, error_code,
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
       deferred_at,
       case when children_total is null then progress_current
            else (select count(*) from finished_jobs c where c.parent_job_id = j.job_id) end,
       case when children_total is null then progress_total else children_total end,
       result, error, error_code,
       submitted_at, submitted_by, started_at, completed_at, deleted_at
  from finished_jobs j;
