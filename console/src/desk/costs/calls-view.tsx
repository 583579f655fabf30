import type { ModelCall } from '@annals/client';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { countText, dollarsText } from '../../components/numbers.ts';
import { Badge } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { Time } from '../../components/values.tsx';
import { ListPage, useList } from '../../lists/list-page.tsx';
import { sumCalls } from './sum-calls.ts';
import './costs.css';

/** Each call of a model in the last 90 days, without texts. */
export function CallsView() {
  const list = useList({
    name: 'calls of models',
    defaultSort: '_id:DESC',
    read: (parameters, signal) => annals().usage.calls(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Calls"
      lead="Each call of a model in the last 90 days: who made it and what it took. No texts."
      example="model:gpt-5* agent:helper outputTokens:>1000"
      chips={[
        ['Chats', 'operation:chat'],
        ['OpenAI clients', 'operation:openai'],
        ['Anthropic clients', 'operation:anthropic'],
        ['Without an answer', 'cause:*'],
      ]}
      noun="call"
      empty={{
        icon: 'clock',
        title: 'There is no call yet',
        text: 'Calls that completions, chats, OpenAI and Anthropic clients make are listed here.',
      }}
      keyOf={({ id = '' }) => id}
      columns={[
        { label: 'When', sort: '_id', class: 'nowrap', cell: ({ at = '' }) => <Time at={at} /> },
        {
          label: 'Model',
          sort: 'model',
          class: 'calls-name',
          title: ({ provider, model }) => `${provider} ${model}`,
          cell: ({ model = '' }) => <Name text={model} />,
        },
        {
          label: 'Client',
          sort: 'client',
          class: 'calls-name',
          title: ({ client }) => client,
          cell: ({ client = '' }) => <Name text={client} />,
        },
        {
          label: 'Agent or user',
          class: 'calls-name',
          title: ({ user }) => user,
          cell: ({ agent, user }) => (
            <>
              {agent === undefined ? undefined : <AgentName id={agent} />}
              {user === undefined ? undefined : <Name text={user} />}
            </>
          ),
        },
        {
          label: 'Tokens',
          sort: 'outputTokens',
          class: 'amount',
          cell: ({ inputTokens, outputTokens }) => `${tokensText(inputTokens)} in, ${tokensText(outputTokens)} out`,
          sum: tokensOf,
        },
        {
          label: 'Cost',
          class: 'amount',
          title: ({ costUsd }) => (costUsd == null ? undefined : `$${costUsd}`),
          cell: ({ costUsd }) => (costUsd == null ? 'unknown' : dollarsText(Number(costUsd))),
          sum: (calls) => <CostOf calls={calls} />,
        },
        {
          label: 'Duration',
          sort: 'durationMs',
          class: 'amount',
          cell: ({ durationMs }) => (durationMs === undefined ? '' : `${countText(durationMs)} ms`),
        },
        {
          label: 'End',
          class: 'nowrap',
          cell: ({ cause, finishReason = '' }) =>
            cause === undefined ? (
              finishReason.replaceAll('_', ' ')
            ) : (
              <Badge tone="bad">{cause.replaceAll('_', ' ')}</Badge>
            ),
        },
      ]}
    />
  );
}

function tokensOf(calls: readonly ModelCall[]): string {
  const { inputTokens, outputTokens, lacksTokens } = sumCalls(calls);
  return `${lacksTokens ? 'at least ' : ''}${countText(inputTokens)} in, ${countText(outputTokens)} out`;
}

function CostOf({ calls }: { readonly calls: readonly ModelCall[] }) {
  const { costUsd, lacksCost } = sumCalls(calls);
  if (costUsd === undefined) return <>unknown</>;
  return (
    <span title={`$${costUsd}`}>
      {lacksCost ? 'at least ' : ''}
      {dollarsText(Number(costUsd))}
    </span>
  );
}

function tokensText(tokens: number | undefined): string {
  return tokens === undefined ? '?' : countText(tokens);
}
