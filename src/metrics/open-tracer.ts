import type { FastifyBaseLogger } from 'fastify';
import type { TraceSettings } from '../core/config/trace-settings.ts';
import { productVersion } from '../core/package-folder.ts';
import type { Tracer } from '../core/trace.ts';

/** Loads OpenTelemetry only if traces are exported, since it takes memory and time to start. */
export async function openTracer(
  settings: TraceSettings | undefined,
  logger: FastifyBaseLogger,
): Promise<Tracer | undefined> {
  if (settings === undefined) return undefined;
  const { createTracer } = await import('./open-telemetry.ts');
  return createTracer({ settings, version: productVersion(), logger });
}
