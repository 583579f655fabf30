import { TabbedViews, type View } from '../components/page.tsx';
import { later } from '../components/states.tsx';
import { AgentsView, AgentView, ModelsView } from './agents/agents-view.tsx';
import { ChatView } from './chat/chat-view.tsx';
import { CompletionsView } from './completions/completions-view.tsx';
import { RequestsView, SessionsView } from './logs/logs-view.tsx';
import './desk.css';

// Rarely the first view of a session.
const AgentEditor = later(async () => (await import('./agents/agent-editor.tsx')).AgentEditor);
const CostsView = later(async () => (await import('./costs/costs-view.tsx')).CostsView);
const CallsView = later(async () => (await import('./costs/calls-view.tsx')).CallsView);
const BudgetsView = later(async () => (await import('./budgets/budgets-view.tsx')).BudgetsView);

const reading = ['ai.agent_read', 'ai.agent_manage'];
export const deskViews: readonly View[] = [
  { path: 'desk/agents', tab: 'Agents', scopes: reading, Content: AgentsView },
  { path: 'desk/agent', below: 'desk/agents', scopes: reading, Content: AgentView },
  { path: 'desk/agent/edit', below: 'desk/agents', scopes: ['ai.agent_manage'], Content: AgentEditor },
  { path: 'desk/agent/new', below: 'desk/agents', scopes: ['ai.agent_manage'], Content: AgentEditor },
  { path: 'desk/chat', tab: 'Chat', scopes: ['ai.agentexecution_manage'], Content: ChatView },
  { path: 'desk/sessions', tab: 'Sessions', scopes: reading, Content: SessionsView },
  { path: 'desk/requests', tab: 'Requests', scopes: reading, Content: RequestsView },
  { path: 'desk/completions', tab: 'Playground', scopes: ['ai.completion_manage'], Content: CompletionsView },
  { path: 'desk/costs', tab: 'Costs', scopes: ['usage.usage_read'], Content: CostsView },
  { path: 'desk/calls', tab: 'Calls', scopes: ['usage.usage_read'], Content: CallsView },
  { path: 'desk/budgets', tab: 'Budgets', scopes: ['usage.budget_manage'], Content: BudgetsView },
  { path: 'desk/models', tab: 'Models', scopes: reading, Content: ModelsView },
];

/** Agents, chats with them, what became of the chats, a playground, costs, budgets and models. */
export function DeskPage() {
  return <TabbedViews root="desk" label="AI desk" views={deskViews} />;
}
