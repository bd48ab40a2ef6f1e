export * from './health/index.ts'
export * from './sample-lake/index.ts'
