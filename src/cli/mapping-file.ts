import { readFile } from 'node:fs/promises';
import { OperatorError } from '../core/errors.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { MappingError, readMapping } from '../recording/mapping/read-mapping.ts';

/** The text of a mapping's file, validated. Throws an `OperatorError` with every fault. */
export async function mappingTextOfFile(file: string): Promise<string> {
  const text = await textOfFile(file);
  checked(file, text);
  return text;
}

/** Reads a mapping from its file. Throws an `OperatorError` with every fault. */
export async function mappingOfFile(file: string): Promise<Mapping> {
  return checked(file, await textOfFile(file));
}

async function textOfFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new OperatorError(`the mapping ${file} cannot be read${code}`);
  }
}

function checked(file: string, text: string): Mapping {
  try {
    return readMapping(text);
  } catch (error) {
    if (!(error instanceof MappingError)) throw error;
    throw new OperatorError(`the mapping ${file} has faults:\n${error.message}`);
  }
}
