import type { Paginator } from '../../pagination/paginator.ts';
import type { Agents } from './service.ts';

export interface AgentRoutesOptions {
  agents: Agents;
  paginator: Paginator;
}
