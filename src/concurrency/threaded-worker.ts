import { AnnalsError } from '../errors.ts';
import { answerRequests } from './thread-worker.ts';

/** A call of a function that a module of this service exports. */
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

answerRequests(async ({ module, name, args }: ThreadedCall): Promise<ThreadedOutcome> => {
  try {
    const { [name]: called } = await import(module);
    return { result: called.here(...args) };
  } catch (error) {
    if (!(error instanceof AnnalsError)) return { error };
    const { type, message, details, headers } = error;
    return { refusal: { type, message, details, headers } };
  }
});
