import type { Client, Pipeline } from '@fencepost/client'
import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { describeJobs } from './jobs/describe.ts'
import { upTo } from './jobs/limit.ts'
import type { Output } from './output/output.ts'

const pipelineId = { pipeline_id: { description: 'The id of the pipeline: 32 hexadecimal digits.' } } as const

export const showPipeline = command({
  name: 'pipelines show',
  summary: 'Shows a pipeline and its jobs',
  arguments: pipelineId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const client = connect(settings)
    const pipeline = await whole(client, await client.getPipeline(args.pipeline_id, { limit: 1 }))
    output.answer(pipeline, () => describe(pipeline, output))
  },
})

export const abortPipeline = command({
  name: 'pipelines abort',
  summary: 'Cancels every unfinished job of a pipeline',
  arguments: pipelineId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const client = connect(settings)
    const pipeline = await whole(client, await client.abortPipeline(args.pipeline_id))
    output.answer(pipeline, () => describe(pipeline, output))
  },
})

/** The pipeline with all of its jobs, whatever number of pages they are. */
async function whole(client: Client, { pipeline_id: id, status }: Pipeline): Promise<Pipeline> {
  return { pipeline_id: id, status, jobs: await upTo(undefined, client.eachPipelineJob(id, { limit: 1000 })) }
}

function describe({ pipeline_id: id, status, jobs }: Pipeline, output: Output): string {
  return `Pipeline ${id} is ${status}.\n\n${describeJobs(jobs, output)}`
}
