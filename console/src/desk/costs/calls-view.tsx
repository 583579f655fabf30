import type { ModelCall } from '@annals/client';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { countText, dollarsText } from '../../components/numbers.ts';
import { Badge } from '../../components/states.tsx';
import { Name, Time } from '../../components/values.tsx';
import { ListPage, SortHeading, TotalRow } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
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
        ['Without an answer', 'cause:*'],
      ]}
      one="call"
      empty={{
        icon: 'clock',
        title: 'There is no call yet',
        text: 'Calls that completions, chats and OpenAI clients make are listed here.',
      }}
    >
      {(calls) => (
        <table class="table">
          <thead>
            <tr>
              <SortHeading label="When" field="_id" list={list} />
              <SortHeading label="Model" field="model" list={list} />
              <SortHeading label="Client" field="client" list={list} />
              <th scope="col">Agent or user</th>
              <SortHeading label="Tokens" amount field="outputTokens" list={list} />
              <th scope="col" class="amount">
                Cost
              </th>
              <SortHeading label="Duration" amount field="durationMs" list={list} />
              <th scope="col">End</th>
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <tr key={call.id}>
                <td class="nowrap">
                  <Time at={call.at ?? ''} />
                </td>
                <td class="calls-name" title={`${call.provider} ${call.model}`}>
                  <Name text={call.model ?? ''} />
                </td>
                <td class="calls-name" title={call.client}>
                  <Name text={call.client ?? ''} />
                </td>
                <td class="calls-name" title={call.user}>
                  {call.agent === undefined ? undefined : <AgentName id={call.agent} />}
                  {call.user === undefined ? undefined : <Name text={call.user} />}
                </td>
                <td class="amount">
                  {tokensText(call.inputTokens)} in, {tokensText(call.outputTokens)} out
                </td>
                <td class="amount" title={call.costUsd == null ? undefined : `$${call.costUsd}`}>
                  {call.costUsd == null ? 'unknown' : dollarsText(Number(call.costUsd))}
                </td>
                <td class="amount">{call.durationMs === undefined ? '' : `${countText(call.durationMs)} ms`}</td>
                <td class="nowrap">
                  {call.cause === undefined ? (
                    (call.finishReason ?? '').replaceAll('_', ' ')
                  ) : (
                    <Badge tone="bad">{call.cause.replaceAll('_', ' ')}</Badge>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
          <TotalRow list={list} columns={4}>
            <Sums calls={calls} />
          </TotalRow>
        </table>
      )}
    </ListPage>
  );
}

/** The cells from the tokens on. */
function Sums({ calls }: { readonly calls: readonly ModelCall[] }) {
  const { inputTokens, outputTokens, lacksTokens, costUsd, lacksCost } = sumCalls(calls);
  return (
    <>
      <td class="amount">
        {lacksTokens ? 'at least ' : ''}
        {countText(inputTokens)} in, {countText(outputTokens)} out
      </td>
      <td class="amount" title={costUsd === undefined ? undefined : `$${costUsd}`}>
        {costUsd === undefined ? 'unknown' : `${lacksCost ? 'at least ' : ''}${dollarsText(Number(costUsd))}`}
      </td>
      <td colSpan={2} />
    </>
  );
}

function tokensText(tokens: number | undefined): string {
  return tokens === undefined ? '?' : countText(tokens);
}
