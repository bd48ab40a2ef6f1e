export * from './sample-lake/index.ts'
