import type { TableMetadata } from '../../metadata/table-metadata.ts'

/**
 * Whether a file is hidden, by its path below the folder that is listed: a name in it begins with _ or a dot. Folders of
 * partitions whose field is called so are not hidden.
 */
export function hiddenPaths({
  partitionSpecs,
}: Pick<TableMetadata, 'partitionSpecs'>): (relativePath: string) => boolean {
  const shown = partitionSpecs
    .flatMap(({ fields }) => fields.map(({ name }) => `${name}=`))
    .filter((name) => /^[_.]/.test(name))
  const isHidden = (name: string): boolean => /^[_.]/.test(name) && !shown.some((prefix) => name.startsWith(prefix))
  return (relativePath) => /(^|\/)[_.]/.test(relativePath) && relativePath.split('/').some(isHidden)
}
