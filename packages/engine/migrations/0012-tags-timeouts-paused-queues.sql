-- Tags and time limits of jobs, and queues that are paused one by one.
--
-- Processes of the release before insert jobs without the new columns, and do not read them. Limit: a job that one of
-- them finishes loses its tags, and none of them knows of a pause.
alter table live_jobs add column tags text[], add column timeout_ms integer, add column start_by timestamptz;
alter table finished_jobs add column tags text[], add column timeout_ms integer, add column start_by timestamptz;

-- Jobs without tags are in neither, so that most claims and settlements write no entry.
create index live_jobs_tags on live_jobs using gin (tags) where tags is not null;
create index finished_jobs_tags on finished_jobs using gin (tags) where tags is not null;
-- What the sweep reads: jobs that have not started, by the time until when they should have.
create index live_jobs_start_by on live_jobs (start_by)
  where status = 'pending' and start_by is not null and started_at is null;

-- A row for each queue from which nothing is claimed.
create table paused_queues (
  queue text primary key,
  paused_at timestamptz not null,
  paused_by text
);

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
       submitted_at, submitted_by, started_at, null::timestamptz as completed_at, null::timestamptz as deleted_at,
       tags, timeout_ms, start_by
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
       submitted_at, submitted_by, started_at, completed_at, deleted_at, tags, timeout_ms, start_by
  from finished_jobs j;

-- The same as submit_job() of the release before, which stays for that, with what is new.
do $migration$
begin
  execute format($create$
    create function %1$I.submit_job(
      operation text, queue text, payload jsonb, priority integer, run_after timestamptz, delay_ms integer,
      max_attempts integer, slot_key text, pipeline_id uuid, submitted_by text, tags text[], timeout_ms integer,
      start_by timestamptz, start_within_ms integer
    ) returns uuid language plpgsql volatile as $body$
    #variable_conflict use_column
    declare
      new_id uuid;
    begin
      insert into %1$I.live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts, slot_key,
                                  pipeline_id, submitted_at, submitted_by, tags, timeout_ms, start_by)
      select %1$I.new_job_id(%1$I.clock(), 1), $1, $2, $3, $4,
             coalesce($5, %1$I.clock() + $6 * interval '1 millisecond'), $7, $8, $9, %1$I.clock(), $10, $11, $12,
             coalesce($13, %1$I.clock() + $14 * interval '1 millisecond')
       where not exists (select from %1$I.settings where key = 'drain' and value <> 'off')
      returning job_id into new_id;
      return new_id;
    end
    $body$
  $create$, current_schema());
end
$migration$;
