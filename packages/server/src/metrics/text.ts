import { metricTable, type MetricName } from './table.ts'

export type Labels = Readonly<Record<string, string>>

/** One number of a metric. */
export interface Sample {
  labels: Labels
  value: number
  /** `_bucket`, `_sum` or `_count` of a histogram. */
  suffix?: string
}

/** The samples of each metric, in the text format of Prometheus. */
export function metricsText(samples: Partial<Record<MetricName, readonly Sample[]>>): string {
  return (Object.keys(metricTable) as MetricName[])
    .map((name) => {
      const { type, help } = metricTable[name]
      const lines = (samples[name] ?? []).map(
        ({ labels, value, suffix = '' }) => `${name}${suffix}${labelsText(labels)} ${numberText(value)}\n`,
      )
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function numberText(value: number): string {
  return value === Number.POSITIVE_INFINITY ? '+Inf' : String(value)
}
