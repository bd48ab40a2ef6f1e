import { startIngest } from '../operator.ts'
import { sampleYear } from '../sample.ts'
import { showReport } from '../show-report.ts'
import { factorFiles, type World } from '../world.ts'

/** The same ingest started twice at once is run once; another file for the same slot waits for its turn. */
export async function twoOperators(world: World): Promise<void> {
  const { engine, screen } = world
  screen.title('2. Two operators start the same ingest at once')
  const ingest = { year: sampleYear, ...world.activities }
  const operators = ['ada', 'ben']
  const answers = await Promise.all(operators.map((operator) => startIngest(engine, ingest, operator)))
  for (const [nth, answer] of answers.entries()) {
    screen.say(`  ${operators[nth]}: ${answer.started ? `started, as job ${answer.jobId}` : answer.message}`)
  }
  const winner = answers.find((answer) => answer.started)
  if (winner === undefined) throw new Error('Neither of the two ingests was started.')

  await world.until(winner.jobId, ({ status }) => status === 'running')
  const corrected = await startIngest(engine, { year: sampleYear, ...world.corrected }, 'cyd')
  if (!corrected.started) throw new Error(corrected.message)
  const explanation = await engine.explain(corrected.jobId)
  screen.say(`  cyd: started, with a corrected file, as job ${corrected.jobId}`)
  screen.say(`       ${explanation?.message}\n`)
  await world.follow(winner.pipelineId)
  await world.follow(corrected.pipelineId)
  const job = await engine.get(corrected.jobId)
  screen.say(`\n  The current job of ${job?.slotKey} is ${job?.isCurrent ? 'that of cyd' : 'another'}.`)
  const [report] = await world.reports()
  if (report !== undefined) showReport(screen, report, { ...factorFiles, activities: world.corrected.file })
}
