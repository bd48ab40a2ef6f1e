// @ts-check
import { Cell } from './cell.mjs'
import { now } from './clock.mjs'
import { load } from './machine.mjs'
import { Meeting } from './meeting.mjs'
import { progress } from './progress.mjs'
import { OutOfTime, within } from './within.mjs'

/** Each system's empty schema, made once; every cell begins as a copy of it. */
export async function makeTemplates(postgres, { systems, workloads, sizes }) {
  for (const system of systems) {
    const freezes = workloads.some((workload) => workload.name === 'freeze' && takesPart(system, workload, sizes))
    for (const kind of freezes ? ['empty', 'short_lease'] : ['empty']) {
      progress(`${system.name}: schema`)
      const cell = new Cell({ postgres, system, sizes, say: () => {} })
      cell.url = await postgres.recreate(cell.template(kind))
      const options = kind === 'short_lease' ? system.shortLease : {}
      await within(sizes.cellSeconds, cell.once('setup', {}, { options }))
    }
  }
}

/** Every workload, one after another: the runs of each system, and when and under what load it was measured. */
export async function runAll(postgres, plan) {
  const endsAt = now() + ((plan.sizes.totalSeconds ?? Infinity) * plan.runs * 1000) / plan.sizes.runs
  const results = {}
  const circumstances = {}
  for (const [at, workload] of plan.workloads.entries()) {
    circumstances[workload.name] = { date: new Date().toISOString(), load: load() }
    const where = `${at + 1}/${plan.workloads.length} ${workload.name}`
    results[workload.name] = await runWorkload(workload, { postgres, where, endsAt, ...plan })
  }
  return { results, circumstances }
}

async function runWorkload(workload, { postgres, where, endsAt, systems, sizes, runs }) {
  const applicable = systems.filter((system) => takesPart(system, workload, sizes))
  const ofSystem = Object.fromEntries(applicable.map(({ name }) => [name, /** @type {any[]} */ ([])]))
  const cellOf = (system, nth) => {
    const say = (text) => progress(`${where}, ${nth}, ${system.name}: ${text}`)
    say(workload.title)
    return new Cell({ postgres, system, sizes, say })
  }
  for (const system of workload.prepare ? applicable : []) {
    const prepared = await attempt(cellOf(system, 'preparing'), workload.prepare, endsAt)
    if (prepared !== undefined) ofSystem[system.name].push(prepared)
  }
  for (let run = 0; run < runs; run += 1) {
    // Who comes first changes from run to run, so that nobody always has the warm, or the tired, machine.
    const order = applicable
      .map((_, nth) => applicable[(nth + run) % applicable.length])
      .filter(({ name }) => !ofSystem[name].some(isHopeless))
    const meeting = new Meeting(order.length)
    const measure = async (system) => {
      const cell = cellOf(system, `run ${run + 1}/${runs}`)
      ofSystem[system.name].push(await attempt(cell, (it) => workload.run(it, meeting), endsAt))
      meeting.leave()
    }
    if (workload.together) await Promise.all(order.map(measure))
    else for (const system of order) await measure(system)
  }
  if (workload.tidy) for (const system of applicable) await workload.tidy(cellOf(system, 'tidying'))
  return ofSystem
}

function takesPart(system, workload, sizes) {
  return (system.takesPartIn?.includes(workload.name) ?? true) && (workload.applies?.(system, sizes) ?? true)
}

/** A cell's values; an error, or too little time, is its result too, and the bench goes on. */
async function attempt(cell, work, endsAt) {
  const { cellSeconds } = cell.sizes
  const left = (endsAt - now()) / 1000
  if (left <= 0) return { notMeasured: true }
  const timer = setTimeout(() => cell.expire(cellSeconds), Math.min(left, cellSeconds) * 1000)
  try {
    return await work(cell)
  } catch (error) {
    const reason = cell.reasonOf(error)
    if (reason instanceof OutOfTime) return left < cellSeconds ? { notMeasured: true } : { outOfTime: reason.seconds }
    return { error: reason instanceof Error ? reason.message : String(reason) }
  } finally {
    clearTimeout(timer)
    await cell.close()
  }
}

// Waiting again for what did not come, or failed, would tell nothing new.
function isHopeless({ error, outOfTime, notMeasured, ...values }) {
  return (
    error !== undefined ||
    outOfTime !== undefined ||
    notMeasured !== undefined ||
    Object.values(values).some((value) => value?.over !== undefined)
  )
}
