import type { FastifyRequest } from 'fastify';

/** Where a request came from. */
export interface Caller {
  /** The address: that of the client where the proxy before Annals is trusted. */
  readonly address: string;
  /** The program, as it names itself; undefined where it does not. */
  readonly program: string | undefined;
}

const maxProgram = 200;

/** The address and the program of a request. Anybody can write what a program says of itself, so no character of it hides others. */
export function callerOf({ ip: address, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Caller {
  const program = (headers['user-agent'] ?? '').replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').trim();
  return { address, program: program === '' ? undefined : program.slice(0, maxProgram) };
}
