import { AnnalsError } from '../errors.ts';
import { threadFile } from './thread.ts';
import { defaultThreads, ThreadPool } from './thread-pool.ts';

/** A call of a function that a module of this service makes by `threaded`. */
export interface ThreadedCall {
  /** The URL of the module. */
  readonly module: string;
  readonly name: string;
  readonly args: readonly unknown[];
}

/** What became of the call. The class of an error does not pass from thread to thread, so a refusal is sent as its parts. */
export type ThreadedOutcome =
  | { readonly result: unknown }
  | { readonly refusal: Pick<AnnalsError, 'type' | 'message' | 'details' | 'headers'> }
  | { readonly error: unknown };

/** Texts of more characters together are long: reading them may hold the event loop for more than a few milliseconds. */
export const maxInlineCharacters = 32 * 1024;

/** A function that runs in a worker thread where its arguments are long. `here` runs it in the caller's thread. */
export interface Threaded<Args extends readonly unknown[], Result> {
  (...args: Args): Promise<Result>;
  here(...args: Args): Result;
}

/** The functions of all modules that this thread has loaded, by their names. */
const functions = new Map<string, (...args: never[]) => unknown>();

const pool = new ThreadPool<ThreadedCall, ThreadedOutcome>({
  file: threadFile(import.meta.url, 'threaded-worker'),
  threads: defaultThreads(),
  memory: 512,
  newMemory: 8,
  name: 'long documents at work',
});

/**
 * Makes a function run in a worker thread where its arguments have more than `maxInlineCharacters`, so that it does not
 * hold the event loop (contract 11). Tenants take turns. The function depends on nothing but its arguments. These and
 * the result are plain data. Errors reach the caller as they are thrown, if they are AnnalsErrors.
 *
 * @param moduleUrl `import.meta.url` of the module, which the worker loads
 * @param name the name of the result, which no other module gives
 * @param isLong whether arguments that are not long count as long, because they make a long result
 *
 * @example
 * export const sizeOfText = threaded(import.meta.url, 'sizeOfText', (text: string) => sizeOfJson(parseJson(text)));
 * const size = await sizeOfText(document);
 */
export function threaded<Args extends readonly unknown[], Result>(
  moduleUrl: string,
  name: string,
  call: (...args: Args) => Result,
  isLong: (...args: Args) => boolean = () => false,
): Threaded<Args, Result> {
  functions.set(name, call);
  const inThread = async (args: Args): Promise<Result> => {
    const outcome = await pool.ask({ module: moduleUrl, name, args });
    // The worker has called this very function.
    if ('result' in outcome) return outcome.result as Result;
    throw 'refusal' in outcome ? refusalOf(outcome.refusal) : outcome.error;
  };
  const callWhereFit = async (...args: Args) =>
    charactersOf(args) > maxInlineCharacters || isLong(...args) ? await inThread(args) : call(...args);
  return Object.assign(callWhereFit, { here: call });
}

/** In a worker: loads the module, and calls the function that it has made. */
export async function callInThread({ module, name, args }: ThreadedCall): Promise<unknown> {
  await import(module);
  const call = functions.get(name);
  if (call === undefined) throw new Error(`${module} makes no function ${name}`);
  // The caller has checked them against the very function.
  return call(...(args as never[]));
}

function refusalOf({ type, message, details, headers }: Extract<ThreadedOutcome, { refusal: unknown }>['refusal']) {
  return new AnnalsError(type, message, { details, headers });
}

/** The characters of the texts in arguments: in lists and objects too, but not deeper. */
function charactersOf(args: readonly unknown[], levels = 1): number {
  let characters = 0;
  for (const value of args) {
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'object' && value !== null && levels > 0) {
      characters += charactersOf(Array.isArray(value) ? value : Object.values(value), levels - 1);
    }
  }
  return characters;
}
