/* The kinds of blocks that a context is made of, in the order in which they are stacked. */

export const kindNames = [
  'tools',
  'system',
  'memory',
  'file',
  'summary',
  'user',
  'assistant',
  'thinking',
  'result',
  'other',
] as const;
export type Kind = (typeof kindNames)[number];

export const kindTitles: Record<Kind, [code: string, title: string, means: string]> = {
  tools: ['TD', 'Tool definitions', 'what the model may call, with its arguments'],
  system: ['SY', 'System', 'the system prompt and reminders of the agent'],
  memory: ['ME', 'Memory', 'memory files and boards'],
  file: ['FI', 'Files', 'contents of files that were read or attached'],
  summary: ['SU', 'Summary', 'a summary in place of earlier messages'],
  user: ['US', 'User', 'messages of people'],
  assistant: ['AS', 'Assistant', 'what the model wrote, with its tool calls'],
  thinking: ['TH', 'Thinking', 'reasoning of the model before its answers'],
  result: ['TR', 'Tool results', 'output of tools other than file contents'],
  other: ['OT', 'Other', 'everything else'],
};
