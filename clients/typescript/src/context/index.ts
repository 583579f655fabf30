export type { Context, Person } from './context.ts';
export { express, fastify, hono, koa, nest } from './middlewares.ts';
export type { RequestOptions, Resolve } from './request.ts';
export { currentContext, runWithContext, setContext, withoutContext } from './store.ts';
