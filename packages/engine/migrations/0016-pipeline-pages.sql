-- A page of a pipeline is read in order from one index of each table, and its status from the first job of each state,
-- however many jobs it has.
drop index live_jobs_pipeline;
drop index finished_jobs_pipeline;
create index live_jobs_pipeline on live_jobs (pipeline_id, job_id) where pipeline_id is not null;
create index finished_jobs_pipeline on finished_jobs (pipeline_id, job_id) where pipeline_id is not null;
-- Children are left out of the status.
create index live_jobs_pipeline_own on live_jobs (pipeline_id, job_id)
  where pipeline_id is not null and parent_job_id is null;
create index finished_jobs_pipeline_own on finished_jobs (pipeline_id, status, job_id)
  where pipeline_id is not null and parent_job_id is null;
