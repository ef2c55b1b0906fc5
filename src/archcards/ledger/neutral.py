"""Fields that change no count, and how a field looks that might."""

__all__ = ["NEUTRAL", "STRUCTURAL"]

# What the common configuration class of the transformers library, checkpoint tools and
# quantisers write into any file, and what acts on training, sampling or numerics only.
NEUTRAL = frozenset(
    """
    model_type architectures transformers_version torch_dtype dtype auto_map name_or_path
    _name_or_path _commit_hash return_dict return_dict_in_generate output_hidden_states
    output_attentions use_return_dict use_cache is_encoder_decoder is_decoder
    chunk_size_feed_forward torchscript use_bfloat16 tf_legacy_loss
    problem_type id2label label2id num_labels task_specific_params tokenizer_class
    tokenizer_model prefix bad_words_ids begin_suppress_tokens suppress_tokens
    bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id mask_token_id unk_token_id
    decoder_start_token_id forced_bos_token_id forced_eos_token_id image_token_id
    image_token_index video_token_id audio_token_id boi_token_id eoi_token_id boa_token_id
    eoa_token_id eoa_token_index vision_start_token_id vision_end_token_id vision_token_id
    boi_token_index eoi_token_index max_length min_length do_sample early_stopping num_beams
    num_beam_groups diversity_penalty temperature top_k top_p typical_p repetition_penalty
    length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size num_return_sequences
    exponential_decay_length_penalty remove_invalid_values output_scores finetuning_task
    quantization_config compression_config quantization quantization_kwargs unsloth_fixed
    unsloth_version kernel_config neuron mlx_version attn_implementation _attn_implementation
    _attn_implementation_autoset attn_implementation_internal experts_implementation
    initializer_range initializer_factor init_std init_method initializer_std
    use_flash_attention use_flash_attn flash_attn use_memory_efficient_attention
    attention_dropout attention_probs_dropout_prob hidden_dropout_prob hidden_dropout dropout
    attn_pdrop embd_pdrop resid_pdrop residual_dropout embedding_dropout dropout_rate
    activation_dropout classifier_dropout classifier_dropout_prob drop_path_rate resid_dropout
    layerdrop layer_dropout summary_first_dropout embd_dropout emb_dropout attn_dropout ffn_dropout
    layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps norm_epsilon layernorm_epsilon
    layer_norm_elementwise_eps rope_theta rope_scaling rope_parameters rope_local_base_freq
    rope_type rope_interleave rope_interleaved rotary_pct rotary_emb_base rotary_emb_fraction
    rotary_dim partial_rotary_factor rope_ratio original_max_position_embeddings
    max_position_embeddings rotary_base
    original_rope default_theta rope_percentage swa_rope_theta
    initial_context_length model_max_length max_seq_len seq_length training_sequence_length
    max_sequence_length seq_len max_window_layers max_context_len
    hidden_act hidden_activation activation_function activation mlp_hidden_act
    router_aux_loss_coef router_z_loss_coef output_router_logits aux_loss_alpha seq_aux
    router_jitter_noise router_bias_update_speed router_dtype aux_loss_coef moe_aux_loss_coeff
    norm_topk_prob routed_scaling_factor scoring_func topk_method n_group topk_group
    num_expert_group moe_router_activation_func moe_renormalize
    logits_scaling embedding_multiplier residual_multiplier attention_multiplier
    query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping logit_scale
    logits_soft_cap logits_to_keep num_logits_to_keep swiglu_limit
    pretraining_tp slow_but_exact fp32_residual_connection residual_in_fp32 float32_logits
    ep_size tensor_parallel pipeline_parallel gradient_checkpointing use_parallel_residual
    special_tokens_map language languages vocab_file freeze_router
    sentence_transformers sbert_ce_default_activation_function output_past is_llama_config
    transformers.js_config
""".split()
)

# Parts of names that suggest a size, a count or a switch of the structure.
STRUCTURAL = (
    "hidden head layer expert dim size rank window bias norm tie conv state mlp kv width depth "
    "embed vocab block chunk group pattern attn attention ffn proj lora moe mamba ssm linear latent "
    "share gate gating compress index cache sparse stride period interval freq recurr mtp predict vision "
    "audio image encoder decoder mask sink n_ num_ position router adapter sliding"
).split()
