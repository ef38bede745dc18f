-- Whole training sequences out of the stored segments: token_ids, logprobs and loss_mask of equal length, one row a sequence.
-- A segment is *chained* when its prompt goes on exactly where its parent's prompt and completion ended. A sequence is a chain
-- from one that is not to one that nothing chains to. Where several sequences share a beginning, its completions count in the
-- first of them alone, so that no sampled token is trained on twice; what no policy sampled never counts.
create view _token_links as
select run_id, rollout_id, call, case when chained then parent end as parent from _tokens;

create view _token_chains as
with recursive chain as (
    select run_id, rollout_id, call as sequence, call, parent
    from _token_links leaf
    where not exists (
        from _token_links next
        where next.run_id = leaf.run_id and next.rollout_id = leaf.rollout_id and next.parent = leaf.call
    )
    union all
    select chain.run_id, chain.rollout_id, chain.sequence, link.call, link.parent
    from chain
    join _token_links link
        on link.run_id = chain.run_id and link.rollout_id = chain.rollout_id and link.call = chain.parent
)
select run_id, rollout_id, sequence, call, min(sequence) over (partition by run_id, rollout_id, call) = sequence as first
from chain;

create view tokens as
select
    run_id, rollout_id, sequence, any_value(role) as role,
    flatten(list(prompt_token_ids || completion_token_ids order by call)) as token_ids,
    flatten(list(
        list_transform(prompt_token_ids, lambda _: null::double)
        || list_resize(logprobs, len(completion_token_ids))
        order by call
    )) as logprobs,
    flatten(list(
        list_transform(prompt_token_ids, lambda _: 0::tinyint)
        || list_transform(completion_token_ids, lambda _: (first and role = 'policy')::tinyint)
        order by call
    )) as loss_mask,
    list(call order by call) as calls,
    any_value(weight_version) as weight_version
from _token_chains
join _tokens using (run_id, rollout_id, call)
group by run_id, rollout_id, sequence;
