import { readFile } from 'node:fs/promises';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { MappingError, readMapping } from '../recording/mapping/read-mapping.ts';
import { OperatorError } from './command.ts';

/** Reads a mapping from its file. Throws an `OperatorError` that names every fault. */
export async function mappingOfFile(file: string): Promise<Mapping> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new OperatorError(`the mapping ${file} cannot be read${code}`);
  }
  try {
    return readMapping(text);
  } catch (error) {
    if (!(error instanceof MappingError)) throw error;
    throw new OperatorError(`the mapping ${file} has faults:\n${error.message}`);
  }
}
